"""Candidates that get the same requests as the version that answers (`--shadow`, `--canary`).

No answer waits for a candidate: an answered request is put into a queue, and a thread asks the candidate, many
requests together if they wait. Answers need the processor and Python's lock that this thread uses meanwhile. So it may
work for a moment when the comparison begins, and then for a small share of the time, too small to be seen in the 99th
percentile of the clients' times. Requests that do not fit into the queue are skipped and counted.

With `--canary`, the candidate answers a share of the clients' requests itself, until it proves different. If it fails
to answer one, the model itself does. The evidence comes from the other requests.
"""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from stoker.errors import describe_error
from stoker.serve.rollout.changes import compare_answers
from stoker.serve.rollout.evidence import AgreementTest, Conclusion
from stoker.serve.signature import Array
from stoker.units import quantity

if TYPE_CHECKING:
    from stoker.serve.plane.served import ServedSignature
    from stoker.serve.plane.settings import ServerSettings
    from stoker.serve.plane.versions import Version

_MOST_WAITING: Final = 256
# How long the thread of a candidate may keep the others from running Python, in seconds; Python's default is 5 ms. A
# low priority would not help: a thread that is not scheduled keeps the lock that answers need, too.
_SWITCH_S = 0.0005
# How long a candidate may work before it has to rest; then how many times longer it rests than it worked, and at most.
_UNRESTED_S: Final = 0.1
_REST_FACTOR: Final = 500
_LONGEST_REST_S: Final = 30.0
# How a conclusion is spelled as a number, for Prometheus.
_NUMBERS = {Conclusion.SAME: -1, Conclusion.OPEN: 0, Conclusion.DIFFERENT: 1}


Record = Callable[[str, Mapping[str, object]], None]
"""Keeps what a candidate of a model was found to be."""


@dataclass(frozen=True)
class AnsweredRequest:
    """An answered request, to be sent to the candidate.

    Attributes:
        version: the version that answered.
        signature: the signature that answered.
        inputs: the arrays in the order of the signature.
        answers: the outputs by name.
        size: roughly how many bytes it takes while it waits.
        count: the number of its rows.
    """

    version: Version
    signature: ServedSignature
    inputs: list[Array]
    answers: Mapping[str, Array]
    size: int
    count: int


def _join(parts: Iterable[list[Array]]) -> list[Array]:
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


class ShadowCandidate:
    """One candidate, its queue and its thread."""

    def __init__(
        self,
        model: str,
        version: Version,
        settings: ServerSettings,
        say: Callable[[str], None],
        record: Record,
    ) -> None:
        self.model, self.version = model, version
        self._allowed, self._most_bytes, self._say = settings.shadow_allowed, settings.body_bytes, say
        self._record = record
        self.test = AgreementTest(self._allowed)
        self.skipped = self.failed = 0
        self.answered = self.refused = 0  # clients' requests, with --canary
        self._canary = settings.canary
        self._compared_with: Version | None = None
        self._waiting: queue.SimpleQueue[AnsweredRequest | None] = queue.SimpleQueue()
        # Only one thread writes each of the two.
        self._bytes_in = self._bytes_out = 0
        self._ended = threading.Event()
        self._worked_s = 0.0
        self._most_rows = settings.batch
        self._joins = True  # whether it may be asked several requests together
        self._thread = threading.Thread(target=self._work, name="stoker-shadow", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        """Return whether another request may wait; otherwise count it as skipped."""
        if self._waiting.qsize() < _MOST_WAITING:
            return True
        self.skipped += 1
        return False

    def offer(self, one: AnsweredRequest) -> None:
        """Send this request to the candidate, too, unless too many bytes wait already. This never blocks."""
        waiting = self._bytes_in - self._bytes_out
        if waiting and waiting + one.size > self._most_bytes:
            self.skipped += 1
            return
        self._bytes_in += one.size
        self._waiting.put(one)

    def takes_canary(self) -> bool:
        """Decide by chance whether the candidate answers a client's request; never once it has proved different."""
        if self.test.conclusion is Conclusion.DIFFERENT or random.random() >= self._canary:
            return False
        self.answered += 1
        return True

    def close(self) -> None:
        """End the thread; requests that still wait are dropped."""
        self._ended.set()
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        following = self._waiting.get()
        while following is not None and not self._ended.is_set():
            began = perf_counter()
            batch, following = self._take_batch(following)
            self._ask(batch)
            self._bytes_out += sum(one.size for one in batch)
            self._rest(perf_counter() - began)
            if following is None and not self._ended.is_set():
                following = self._waiting.get()

    def _rest(self, worked_s: float) -> None:
        """Leave the processor to the clients' requests after having worked so long."""
        self._worked_s += worked_s
        if self._worked_s > _UNRESTED_S:
            self._ended.wait(min(_REST_FACTOR * worked_s, _LONGEST_REST_S))

    def _take_batch(self, first: AnsweredRequest) -> tuple[list[AnsweredRequest], AnsweredRequest | None]:
        """Return waiting requests that can be sent together, and the next one, which cannot, if it is known."""
        batch, rows = [first], first.count
        while self._joins and not self._waiting.empty():
            one = self._waiting.get()
            rows += 0 if one is None else one.count
            same = one is not None and one.version is first.version and one.signature is first.signature
            if one is None or not same or rows > self._most_rows:
                return batch, one
            batch.append(one)
        return batch, None

    def _ask(self, batch: list[AnsweredRequest]) -> None:
        version = batch[0].version
        if self._compared_with is not version:
            if self._compared_with is not None:
                self._say(f"{self.model} shadow: version {version.number} answers now: starting over")
                self.test, self.failed, self._worked_s = AgreementTest(self._allowed), 0, 0.0
            self._compared_with = version
        try:
            shares = self._shares_changed(batch)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises, clients would have got no answer from it
            if len(batch) > 1:
                for one in batch:
                    self._ask([one])
                return
            self.failed += 1
            shares = [1.0]
            if self.failed == 1:
                self._say(f"{self.model} shadow: it does not answer: {describe_error(error)}")
        before = self.test.conclusion
        if self.test.add(*shares) is not before:
            self._say(f"{self.model} shadow: {self.test.describe()}")
            self._record(self.model, self.describe())

    def _shares_changed(self, batch: list[AnsweredRequest]) -> list[float]:
        """Return the share of each request's rows whose answer changed."""
        first, alone = batch[0], len(batch) == 1
        columns = first.inputs if alone else _join(one.inputs for one in batch)
        names = [field.name for field in first.signature.inputs]
        signature = self.version.signature(first.signature.name)
        rows = signature.read_rows(dict(zip(names, columns, strict=True)))
        self._joins = rows.joins
        if not (alone or rows.joins):
            raise ValueError("the candidate answers each request alone")
        answers = signature.name_answers(signature.queue.run(rows.arrays))
        if alone:
            return [compare_answers(first.answers, answers).share]
        joined = _join(list(one.answers.values()) for one in batch)
        changed = compare_answers(dict(zip(first.answers, joined, strict=True)), answers).changed
        ends = np.cumsum([one.count for one in batch])
        if len(changed) != ends[-1]:
            raise ValueError(f"the model did not give {quantity(ends[-1], 'row')} for {ends[-1]}")
        return [float(part.mean()) for part in np.split(changed, ends[:-1])]

    def describe(self) -> dict[str, object]:
        """Return the result so far as JSON."""
        return {
            "path": str(self.version.path),
            "version": self.version.number,
            "conclusion": self.test.conclusion.value,
            "requests": self.test.requests,
            "changed": self.test.changed,
            "allowed": self.test.allowed,
            "error": self.test.error,
            "failed": self.failed,
            "skipped": self.skipped,
            "canary_answered": self.answered - self.refused,
            "canary_refused": self.refused,
        }

    def metrics(self) -> dict[str, float]:
        """Return the result so far in Prometheus' terms."""
        return {
            "stoker_shadow_requests": self.test.requests,
            "stoker_shadow_changed_ratio": self.test.changed,
            "stoker_shadow_failed": self.failed,
            "stoker_shadow_skipped": self.skipped,
            "stoker_canary_answered": self.answered - self.refused,
            "stoker_canary_refused": self.refused,
            "stoker_shadow_conclusion": _NUMBERS[self.test.conclusion],
        }


_HELP = {
    "stoker_shadow_requests": "Requests that the candidate was sent, too.",
    "stoker_shadow_changed_ratio": "The share of their rows whose answer changed.",
    "stoker_shadow_failed": "Requests that the candidate did not answer.",
    "stoker_shadow_skipped": "Requests that it was not sent, because too many were waiting.",
    "stoker_canary_answered": "Clients' requests that the candidate answered, with --canary.",
    "stoker_canary_refused": "Clients' requests that it did not answer, so that the model did.",
    "stoker_shadow_conclusion": "1: different, -1: same, 0: not enough yet.",
}


class Shadows:
    """The candidates of a server, by the model that they may replace."""

    def __init__(self) -> None:
        self._candidates: dict[str, ShadowCandidate] = {}

    def start(
        self,
        settings: ServerSettings,
        load: Callable[[str, Path], Version],
        say: Callable[[str], None],
        record: Record,
    ) -> None:
        """Load the candidates and start sending them requests.

        Raises:
            BundleError: a candidate cannot be loaded.
        """
        if settings.shadows:
            sys.setswitchinterval(_SWITCH_S)
        for model, path in settings.shadows.items():
            self._candidates[model] = ShadowCandidate(model, load(model, Path(path)), settings, say, record)

    def candidate(self, model: str) -> ShadowCandidate | None:
        """Return the candidate for a model."""
        return self._candidates.get(model)

    def choose_canary(self, model: str) -> ShadowCandidate | None:
        """Return the candidate if it is to answer this request, which chance decides."""
        candidate = self._candidates.get(model)
        return candidate if candidate is not None and candidate.takes_canary() else None

    def describe(self) -> dict[str, dict[str, object]]:
        """Return what is known about each candidate."""
        return {name: one.describe() for name, one in self._candidates.items()}

    def text(self, worker: int) -> str:
        """Return what is known, in Prometheus' format."""
        found = {name: one.metrics() for name, one in self._candidates.items()}
        return "".join(_spell_metric(name, found, worker) for name in _HELP) if found else ""

    def close(self, say: Callable[[str], None]) -> None:
        """End all candidates, and say what was found."""
        for name, one in self._candidates.items():
            one.close()
            say(f"{name} shadow: {one.test.describe()}")


def _spell_metric(metric: str, found: Mapping[str, Mapping[str, float]], worker: int) -> str:
    lines: Iterable[str] = (
        f'{metric}{{model="{name}",worker="{worker}"}} {values[metric]:g}\n' for name, values in found.items()
    )
    return f"# HELP {metric} {_HELP[metric]}\n# TYPE {metric} gauge\n" + "".join(lines)
