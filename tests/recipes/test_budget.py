"""The time of a recipe: who gets how much of it, and what is cut. The clock is the test's own."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import clock
from stoker.recipes.budget import Budget
from stoker.recipes.progress import Progress, TimeIsUp
from stoker.recipes.rival_training import Rival, RivalKind, RivalTask, train_rivals
from stoker.recipes.rows import Rows

pytestmark = pytest.mark.tensorflow


class Hands:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    found = Hands()
    monkeypatch.setattr(clock, "now_ns", lambda: int(found.now_s * 1e9))
    return found


def _rows(count: int) -> Rows:
    return Rows(np.arange(count, dtype=np.float32), np.zeros(count))


def _kind(hands: Hands, seconds_per_row: float, learned: list[int], ways: int = 1) -> RivalKind:
    def fit(rows: Rows) -> Rival:
        learned.append(len(rows))
        hands.pass_s(len(rows) * seconds_per_row)
        return Rival("slow", lambda asked: np.zeros(len(asked)))

    return RivalKind("slow", [fit] * ways)


def test_without_a_limit_nothing_is_cut(hands: Hands) -> None:
    learned: list[int] = []
    budget = Budget()
    train_rivals([_kind(hands, 1.0, learned)], _rows(50_000), _rows(100), RivalTask(0, False, 0, budget))
    assert learned == [50_000, 50_100]
    assert list(budget.shares(["plain", "periodic"])) == [("plain", None), ("periodic", None)]
    assert budget.cuts == []


def test_a_slow_rival_learns_from_as_many_rows_as_there_is_time_for(hands: Hands) -> None:
    learned: list[int] = []
    budget = Budget(90)
    hands.pass_s(10)
    task = RivalTask(0, False, 0, budget)
    train_rivals([_kind(hands, 0.001, learned, ways=3)], _rows(100_000), _rows(50), task)
    # A fit on 1,000 rows takes a second, on 4,000 four: of the 28.8 s for rivals, four fits have 7.2 s each.
    assert learned[:2] == [1_000, 4_000]
    assert max(learned) == 4_050
    assert hands.now_s - 100 <= 10 + 0.4 * 72 + 0.5
    assert budget.cuts == ["No time for all rows: slow learned from 4,000 of 100,000."]


def test_when_the_time_is_up_one_rival_that_can_be_exported_is_enough(hands: Hands) -> None:
    def fit(rows: Rows) -> Rival:
        hands.pass_s(1)
        return Rival("quick", lambda asked: np.zeros(len(asked)), build=lambda: None)

    budget = Budget(30)
    hands.pass_s(40)
    learned: list[int] = []
    task = RivalTask(0, False, 0, budget)
    kinds = [RivalKind("quick", [fit]), _kind(hands, 1.0, learned)]
    assert [one.name for one in train_rivals(kinds, _rows(500), _rows(50), task)] == ["quick"]
    assert learned == []
    assert budget.cuts == ["No time to train slow."]


def test_the_networks_share_what_is_left_and_the_last_gets_what_others_leave(hands: Hands) -> None:
    budget = Budget(90)
    hands.pass_s(10)
    ends = []
    for name, share_s in budget.shares(["plain", "periodic"]):
        assert share_s is not None
        ends.append((name, round(share_s, 1)))
        hands.pass_s(7 if name == "plain" else share_s)
    # Ten seconds are kept for scores and export: 2, and 0.8 of the 10 that it took to start.
    assert ends == [("plain", 35.0), ("periodic", 63.0)]
    assert hands.now_s - 100 == pytest.approx(80)


def test_a_network_that_has_no_time_is_left_out_and_said(hands: Hands) -> None:
    budget = Budget(20)
    hands.pass_s(17)
    assert list(budget.shares(["plain"])) == []
    assert budget.cuts == ["No time to train the network 'plain'."]


def test_a_network_that_could_only_be_compiled_is_not_begun(hands: Hands) -> None:
    """After a slow start, compiling is slow as well, and nothing can end it."""
    budget = Budget(60)
    hands.pass_s(30)
    assert budget.left_s == 6
    assert list(budget.shares(["plain"])) == []
    quick = Budget(60)
    hands.pass_s(15)
    assert quick.left_s == 31
    hands.pass_s(25)
    assert [name for name, _ in quick.shares(["plain"])] == ["plain"]


def test_the_time_is_up_in_training_validation_and_prediction(hands: Hands) -> None:
    for hook in ("on_train_batch_end", "on_test_batch_end", "on_predict_batch_end"):
        progress = Progress("plain", 5.0)
        hands.pass_s(4.9)
        getattr(progress, hook)(0)
        hands.pass_s(0.2)
        with pytest.raises(TimeIsUp):
            getattr(progress, hook)(1)
