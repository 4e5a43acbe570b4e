"""The data plane: questions from any protocol become rows, wait in a model's queue, and are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from stoker.errors import describe_error
from stoker.serve.batching import Job, now
from stoker.serve.images import takes_files
from stoker.serve.plane import limits
from stoker.serve.plane.errors import ClientLeftError, RequestError, explain
from stoker.serve.plane.ledger import Spent
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.models import ServedModels
from stoker.serve.plane.served import Answers, ServedSignature
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.plane.versions import Version
from stoker.serve.rollout.shadow import AnsweredRequest, ShadowCandidate
from stoker.serve.rows import InputRows
from stoker.serve.signature import Field
from stoker.serve.telemetry.requests import RequestTrace, RequestTracer

# Larger bodies are parsed in a thread, so that the loop can answer others meanwhile; so are bodies that may hold image
# files, of which few bytes may become many pixels.
_LARGE_BYTES, _LARGE_IMAGE_BYTES = 128 << 10, 4 << 10

T = TypeVar("T")  # an answer, as a protocol encodes it


@dataclass(slots=True)
class Inquiry:
    """The facts that the data plane knows about one request.

    Attributes:
        path: what it asks for.
        id: its name in logs and samples.
        model: the model it names; "" for none.
        rows: how many rows it has, once it is parsed.
        started: when its last byte had arrived.
        spent: its seconds by account, with --ledger.
        trace: what is recorded for its trace, with OpenTelemetry.
        held: bytes of memory that its body takes.
        has_left: whether the client has left, so that nobody waits for the answer.
    """

    path: str
    id: str = ""
    model: str = ""
    rows: int = 0
    started: float = 0.0
    spent: Spent | None = None
    trace: RequestTrace | None = None
    held: int = 0
    has_left: bool = False


@dataclass(slots=True)
class Parsed(Generic[T]):
    """The rows of a question, the signature that it is for, and how its answers are encoded."""

    signature: ServedSignature
    rows: InputRows
    encode: Callable[[Answers], T]


@dataclass(slots=True)
class Question(Generic[T]):
    """A request's question to a model.

    Attributes:
        model: the model's name.
        version: the version that is to answer.
        size: the size of the request in bytes.
        parse: turns it into rows for a version; may take long for a large body, and runs in any thread.
        is_pinned: whether the request itself names the version, so that no other may answer.
    """

    model: str
    version: Version
    size: int
    parse: Callable[[Version], Parsed[T]]
    is_pinned: bool = False


class _Asked(Job, Generic[T]):
    """A question in the queue of its model."""

    __slots__ = ("deliver", "inquiry", "named", "parsed", "plane", "question")

    def __init__(
        self,
        plane: DataPlane,
        inquiry: Inquiry,
        question: Question[T],
        parsed: Parsed[T],
        deliver: Callable[[T | RequestError], None],
    ) -> None:
        super().__init__(parsed.rows, plane.settings.timeout)
        self.plane, self.inquiry, self.question = plane, inquiry, question
        self.parsed, self.deliver = parsed, deliver
        self.named: Answers | None = None  # the outputs by name

    def is_late(self) -> bool:
        return self.inquiry.has_left or super().is_late()

    def settle(self) -> None:
        answer: T | RequestError
        if self.inquiry.has_left:
            answer = ClientLeftError()
        else:
            try:
                answer = self._encode()
            except Exception as error:  # noqa: BLE001 - the others that were answered with it must not suffer
                answer = self.plane.explain(error, self.inquiry)
        self.deliver(answer)
        if self.named is not None:
            self._offer(self.named)

    def _offer(self, answers: Answers) -> None:
        """Query the candidate for this model too, now that the client has its answer."""
        question, arrays, models = self.question, self.rows.arrays, self.plane.models
        candidate = models.shadows.candidate(question.model)
        # Answers of older versions cannot be compared with the candidate's.
        if candidate is None or question.version is not models.version(question.model):
            return
        if candidate.has_room():
            size = max(question.size, sum(one.nbytes for one in arrays))
            count = self.rows.count
            candidate.offer(
                AnsweredRequest(question.version, self.parsed.signature, arrays, answers, size, count)
            )

    def _encode(self) -> T:
        plane, inquiry, question, spent = self.plane, self.inquiry, self.question, self.inquiry.spent
        call, trace = self.call, inquiry.trace
        if call is not None and spent is not None:
            spent.queue, spent.batch, spent.engine = call.began - self.put_at, call.batch_s, call.engine_s
        if call is not None and trace is not None:
            trace.add_call(self.put_at, call, question.version.number)
        signature = self.parsed.signature
        answers = self.named = signature.name_answers(self.result())
        if plane.models.deployment.is_sampled():
            plane.models.sample(inquiry.id, question.model, question.version, signature, self.rows, answers)
        if spent is None:
            return self.parsed.encode(answers)
        started = now()
        encoded = self.parsed.encode(answers)
        spent.encode = now() - started
        return encoded


def is_large(size: int, inputs: Sequence[Field]) -> bool:
    """Return whether parsing this many bytes could hold up all other requests."""
    return size > _LARGE_IMAGE_BYTES and (size > _LARGE_BYTES or any(map(takes_files, inputs)))


class DataPlane:
    """Answers questions within the limits of one process."""

    def __init__(
        self,
        settings: ServerSettings,
        models: ServedModels,
        metrics: Metrics,
        say: Callable[[str], None],
        tracer: RequestTracer | None = None,
    ) -> None:
        self.settings, self.models, self.metrics, self.say = settings, models, metrics, say
        self.tracer = tracer
        self.is_ready = False
        self.held = 0  # bytes of the bodies of requests that are not answered yet
        # Use one thread, so that large bodies wait for each other, and other requests do not wait for them.
        self._parser = ThreadPoolExecutor(1, "stoker-parse")

    def is_serving(self) -> bool:
        """Return whether the server takes requests, and every model answers."""
        return self.is_ready and self.models.is_loaded()

    def require_ready(self) -> None:
        """Raise RequestError while the server does not serve."""
        if not self.is_serving():
            raise RequestError(503, "not ready", retry_after=1)

    def hold(self, inquiry: Inquiry, size: int) -> None:
        """Count `size` more bytes of a body; raise RequestError if all bodies together are too large."""
        inquiry.held += size
        self.held += size
        if self.held > self.settings.held_bytes:
            most = self.settings.held_bytes
            raise RequestError(503, f"Requests already hold {most} bytes of memory. Try again later.", 1)

    def release(self, inquiry: Inquiry) -> None:
        """Stop counting a body that is no longer needed."""
        self.held -= inquiry.held
        inquiry.held = 0

    def submit(
        self, inquiry: Inquiry, question: Question[T], deliver: Callable[[T | RequestError], None]
    ) -> None:
        """Have a question answered. `deliver` is called on the event loop, possibly at once."""
        candidate = None if question.is_pinned else self.models.shadows.choose_canary(question.model)
        if candidate is None:
            self._submit(inquiry, question, deliver)
            return
        tried = replace(question, version=candidate.version)
        self._submit(
            inquiry, tried, partial(self._deliver_or_ask_again, inquiry, question, deliver, candidate)
        )

    def _deliver_or_ask_again(
        self,
        inquiry: Inquiry,
        question: Question[T],
        deliver: Callable[[T | RequestError], None],
        candidate: ShadowCandidate,
        found: T | RequestError,
    ) -> None:
        """Deliver the candidate's answer; if the candidate refused, query the model itself."""
        if not isinstance(found, RequestError) or inquiry.has_left:
            deliver(found)
            return
        candidate.refused += 1
        inquiry.rows = 0
        self._submit(inquiry, question, deliver)

    def _submit(
        self, inquiry: Inquiry, question: Question[T], deliver: Callable[[T | RequestError], None]
    ) -> None:
        try:
            queue = question.version.only_queue
            if queue is not None:
                queue.check()
            if is_large(question.size, question.version.inputs):
                parsing = asyncio.get_running_loop().run_in_executor(
                    self._parser, self.parse, inquiry, question
                )
                parsing.add_done_callback(partial(self._enqueue_parsed, inquiry, question, deliver))
                return
            parsed = self.parse(inquiry, question)
            parsed.signature.queue.put(_Asked(self, inquiry, question, parsed, deliver))
        except Exception as error:  # noqa: BLE001 - one request must not take the server with it
            deliver(self.explain(error, inquiry))

    async def ask(self, inquiry: Inquiry, question: Question[T]) -> T:
        """Answer a question; raise RequestError if that is impossible."""
        found: asyncio.Future[T | RequestError] = asyncio.get_running_loop().create_future()
        self.submit(inquiry, question, partial(set_result, found))
        try:
            answer = await found
        finally:
            inquiry.has_left = found.cancelled()
        if isinstance(answer, RequestError):
            raise answer
        return answer

    def parse(self, inquiry: Inquiry, question: Question[T]) -> Parsed[T]:
        """Turn a question into rows, within the limits. Pass anything it raises to `explain`."""
        parsed = question.parse(question.version)
        inquiry.rows += parsed.rows.count
        limits.check_converted(parsed.signature.inputs, parsed.rows, self.settings)
        if inquiry.spent is not None:
            inquiry.spent.parse = now() - inquiry.started
        return parsed

    def _enqueue_parsed(
        self,
        inquiry: Inquiry,
        question: Question[T],
        deliver: Callable[[T | RequestError], None],
        parsing: asyncio.Future[Parsed[T]],
    ) -> None:
        try:
            parsed = parsing.result()
            parsed.signature.queue.put(_Asked(self, inquiry, question, parsed, deliver))
        except Exception as error:  # noqa: BLE001 - as in `submit`
            deliver(self.explain(error, inquiry))

    def explain(self, error: BaseException, inquiry: Inquiry) -> RequestError:
        """Return the error to tell the client; log a fault of the server, too."""
        found = explain(error)
        if found is not error and found.status == 500:
            entry = {
                "id": inquiry.id,
                "path": inquiry.path,
                "model": inquiry.model,
                "error": describe_error(error),
            }
            self.say(json.dumps(entry))
        return found

    def count(self, inquiry: Inquiry, status: int, size: int) -> float:
        """Count a request that was answered, or for which nobody waits any more. Return how many seconds it took."""
        ended = now()
        seconds = ended - inquiry.started
        if inquiry.trace is not None and self.tracer is not None:
            self.tracer.finish(inquiry.trace, inquiry.id, inquiry.model, inquiry.rows, status, ended)
            inquiry.trace = None
        if self.metrics.knows(inquiry.model):
            if inquiry.spent is not None and inquiry.rows:
                self.metrics.count_time(inquiry.model, inquiry.spent, seconds, size)
            self.metrics.count_answer(inquiry.model, status, seconds, inquiry.rows)
        return seconds


def set_result(future: asyncio.Future[T], result: T) -> None:
    """Set the result of a future, unless its caller has stopped waiting."""
    if not future.done():
        future.set_result(result)
