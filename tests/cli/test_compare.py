"""`stoker compare` on saved records: output, exit codes, bad requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.doctor.probes.parts.environment import OTHER_WORK
from stoker.doctor.report.comparison import _count_runs
from stoker.tracking.store import record_files
from tests.samples import sample_finding, sample_record

pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slow runs, three of twice the speed, and one a little off."""
    monkeypatch.chdir(tmp_path)
    record_files.prepare()
    for number in range(3):
        rates = {"slow": 24.0 + number / 10, "fast": 48.0 + number / 10}
        for name, rate in rates.items():
            findings = [sample_finding()] if name == "slow" else []
            save(f"{name}-{number}", steps_per_s=rate, findings=findings)
    save("near", steps_per_s=24.6)


def save(run_id: str, **changes: object) -> None:
    record = sample_record(id=run_id, step_times=[0.04] * 100, examples_per_s=None, **changes)
    record_files.write(record, record_files.path_of(run_id))


def test_two_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "slow-0", "fast-0"]) == 0
    said = capsys.readouterr().out
    assert "B is 2.0x as fast as A" in " ".join(said.split())
    assert "gone sync-in-loop  train.py:42" in said


def test_several_runs_a_side_and_the_exit_code_for_ci(capsys: pytest.CaptureFixture[str]) -> None:
    slow, fast = "slow-0,slow-1,slow-2", "fast-0,fast-1,fast-2"
    assert main(["compare", fast, slow, "--fail-if-slower", "5%"]) == 1
    assert main(["compare", fast, slow]) == 0
    assert main(["compare", slow, fast, "--fail-if-slower", "5"]) == 0
    assert "50 % slower" in capsys.readouterr().out.replace("\u00a0", " ")


def test_a_small_difference_is_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "near", "slow-0", "--fail-if-slower", "5%"]) == 0
    printed = capsys.readouterr()
    said = " ".join(printed.out.replace("\u00a0", " ").split())
    assert (
        "Undecided: B looks 2.4 % slower than A, but with one run per side anything from 13 % slower" in said
    )
    assert "One run is accurate to about ±3.0 %; run each side " in said
    assert " times to confirm a difference of 2.4 %." in said
    assert printed.err == ""


def test_what_looks_too_slow_fails_even_if_one_run_per_side_cannot_prove_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    save("crawling", steps_per_s=6.0, environment={OTHER_WORK: 0.9})
    assert main(["compare", "slow-0", "crawling", "--noise", "40%", "--fail-if-slower", "5%"]) == 3
    printed = capsys.readouterr()
    assert "Undecided: B looks 75 % slower than A" in " ".join(printed.out.replace("\u00a0", " ").split())
    assert printed.err.startswith("stoker: undecided: B looks 75 % slower than A, and the limit is 5 %")
    assert "to decide" in printed.err


def test_a_run_that_crashed_is_not_praised(capsys: pytest.CaptureFixture[str]) -> None:
    save("crashed", steps_per_s=96.0, exit_code=1)
    save("stopped", steps_per_s=96.0, exit_code=130)
    assert main(["compare", "slow-0", "crashed"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "B failed: crashed (exit code 1), so its speed says nothing: fix the run and compare again." in said
    )
    assert "as fast as" not in said
    assert main(["compare", "slow-0", "crashed", "--fail-if-slower", "5%", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == "failed"
    assert captured.err.startswith(
        "stoker: B failed: crashed (exit code 1); a limit on its speed does not hold"
    )
    assert main(["compare", "crashed", "slow-0", "--fail-if-slower", "5%"]) == 3
    assert main(["compare", "slow-0", "stopped", "--fail-if-slower", "5%"]) == 0
    assert "note: did not end normally: stopped" in capsys.readouterr().out


def test_the_bounds_of_a_difference_do_not_repeat_its_direction(capsys: pytest.CaptureFixture[str]) -> None:
    save("fast", steps_per_s=48.0)
    save("a-third-faster", steps_per_s=32.0)
    words = []
    for sides in (["fast", "slow-0"], ["slow-0", "a-third-faster"], ["slow-0", "fast"]):
        main(["compare", *sides, "--noise", "7%"])
        words.append(" ".join(capsys.readouterr().out.replace("\u00a0", " ").split()))
    slower, faster, twice = words
    assert "B is 50 % slower than A (between 34 % and 62 %): 24.0 against 48.0" in slower
    assert "B is 33 % faster than A (between 1.4 % and 75 %): 32.0 against 24.0" in faster
    # Beyond twice as fast, the words change.
    assert "B is 2.0x as fast as A (between 52 % faster and 2.6x as fast): 48.0 against 24.0" in twice


def test_two_programs_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    save("other", steps_per_s=2.0, program="other.py")
    save("moved", steps_per_s=2.0, program="before/train.py")
    main(["compare", "slow-0", "other"])
    note = "note: the programs differ (train.py and other.py): their speeds compare only if both do the same work"
    assert note in " ".join(capsys.readouterr().out.split())
    main(["compare", "slow-0", "moved"])
    assert "the programs differ" not in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "slow-0,slow-1", "fast-0", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "faster"
    assert data["a"] == ["slow-0", "slow-1"]
    assert data["accounts"]["sync"] == [5.0, 5.0]
    assert [finding["kind"] for finding in data["gone"]] == ["sync-in-loop"]


def test_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "slow-0", "fast-0", "--html", "out.html"]) == 0
    assert capsys.readouterr().out == ""
    assert '"page":"compare"' in Path("out.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["slow-0", "slow-0"], "is on both sides"),
        (["slow-0,slow-0", "fast-0"], "names a run twice"),
        (["nothing", "slow-0"], "no run with id 'nothing'"),
        (["slow", "fast-0"], "3 runs whose ids begin with 'slow'"),
        (["slow-0", ","], "names no run"),
        (["slow-0", "fast-0", "--fail-if-slower", "much"], "such as 5%"),
        (["slow-0", "fast-0", "--fail-if-slower=-3%"], "such as 5%"),
        (["slow-0", "fast-0", "--html", "no/such/place.html"], "cannot write"),
    ],
)
def test_bad_requests_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_damaged_records_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    save("empty", wall_s=0.0)
    Path("half.json").write_text('{"schema": 1, "id":', encoding="utf-8")
    for bad in ("empty", "half.json"):
        assert main(["compare", "slow-0", bad]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_one_run_against_several_is_counted_in_the_singular() -> None:
    assert [_count_runs(*sides) for sides in ((1, 1), (3, 3), (3, 1))] == [
        "one run per side",
        "3 runs per side",
        "3 and 1 run",
    ]
