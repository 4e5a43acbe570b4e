"""TensorFlow Serving's PredictionService and ModelService."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stoker.errors import StokerError
from stoker.serve.foreign.warming import serialize_examples
from stoker.serve.grpc.calls import GrpcService, Work
from stoker.serve.grpc.messages import SERVING, serving_message
from stoker.serve.grpc.tensors import check_sizes, read_tensors, rows_of_examples, tensor_of
from stoker.serve.plane import limits
from stoker.serve.plane.answering import Inquiry, Parsed, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.model_config import sources_of
from stoker.serve.plane.served import EXAMPLES, Answers, ServedSignature
from stoker.serve.plane.versions import Version
from stoker.serve.rows import InputRows
from stoker.tf_internals.types import ProtoMessage

_AVAILABLE = 30
_CLASSIFY, _REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
FillResult = Callable[[ProtoMessage, ServedSignature, Answers], None]


class _ServingService(GrpcService):
    """The parts that both services of TensorFlow Serving share."""

    def name_model(self, request: ProtoMessage) -> str:
        spec = getattr(request, "model_spec", None)
        if spec is None:
            tasks = getattr(request, "tasks", None)
            spec = tasks[0].model_spec if tasks else None
        return "" if spec is None else str(spec.name)

    def find_version(self, spec: ProtoMessage) -> Version:
        """Return the version that a request means."""
        number = str(spec.version.value) if spec.HasField("version") else None
        try:
            return self.plane.models.version(spec.name, number, spec.version_label or None)
        except RequestError as error:
            # Clients, and TensorFlow Serving's own tests, look for the first words of this message.
            raise RequestError(error.status, f"Servable not found for request: {error.line}") from None


class PredictionService(_ServingService):
    """Answers tensors and examples."""

    name = f"{SERVING}.PredictionService"

    def calls(self) -> dict[str, Work]:
        return {
            "Predict": self.predict,
            "Classify": self.classify,
            "Regress": self.regress,
            "MultiInference": self.multi_inference,
            "GetModelMetadata": self.metadata,
        }

    async def predict(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Answer tensors with tensors."""
        spec = request.model_spec

        def parse(version: Version) -> Parsed[None]:
            response.Clear()
            signature = version.signature(spec.signature_name)
            fields = {field.name: field for field in signature.outputs}
            check_sizes(signature.inputs, request.inputs, self.settings)
            rows = signature.read_rows(read_tensors(request.inputs))
            for name in request.output_filter:
                if name not in fields:
                    raise RequestError(
                        400, f"there is no output {name!r}; the outputs are {', '.join(fields)}"
                    )

            def fill(answers: Answers) -> None:
                _fill_spec(response.model_spec, spec.name, version, signature)
                for name, array in answers.items():
                    if not request.output_filter or name in request.output_filter:
                        response.outputs[name].MergeFromString(tensor_of(fields[name], array))

            return Parsed(signature, rows, fill)

        await self.plane.ask(inquiry, self._question(spec, request.ByteSize(), parse))

    def _question(
        self, spec: ProtoMessage, size: int, parse: Callable[[Version], Parsed[None]]
    ) -> Question[None]:
        is_pinned = spec.HasField("version") or bool(spec.version_label)
        return Question(spec.name, self.find_version(spec), size, parse, is_pinned)

    async def classify(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Answer examples with labels and their scores, the best first."""
        await self._ask_examples(inquiry, request.model_spec, request.input, response, _CLASSIFY)

    async def regress(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Answer each example with a number."""
        await self._ask_examples(inquiry, request.model_spec, request.input, response, _REGRESS)

    async def multi_inference(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Answer the same examples from several models or signatures, which classify or regress."""
        if not request.tasks:
            raise RequestError(400, "there are no tasks")
        given = getattr(request.input, request.input.WhichOneof("kind") or "example_list")
        limits.check_rows(len(request.tasks) * len(given.examples), self.settings)
        for task in request.tasks:
            if task.method_name not in _METHODS:
                raise RequestError(400, f"method_name {task.method_name!r} must be {_CLASSIFY} or {_REGRESS}")
            result = response.results.add()
            attribute = "classification_result" if task.method_name == _CLASSIFY else "regression_result"
            await self._ask_examples(
                inquiry, task.model_spec, request.input, result, task.method_name, attribute
            )

    async def metadata(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Describe the signatures."""
        odd = [name for name in request.metadata_field if name != "signature_def"]
        if odd or not request.metadata_field:
            raise RequestError(
                400, f"metadata_field must be signature_def, got {odd[0] if odd else 'none'!r}"
            )
        version = self.find_version(request.model_spec)
        made = serving_message("SignatureDefMap")
        for name, signature in version.signatures.items():
            made.signature_def[name].MergeFromString(signature.definition().SerializeToString())
        packed = response.metadata["signature_def"]
        packed.type_url = f"type.googleapis.com/{SERVING}.SignatureDefMap"
        packed.value = made.SerializeToString()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version.number

    async def _ask_examples(
        self,
        inquiry: Inquiry,
        spec: ProtoMessage,
        given: ProtoMessage,
        response: ProtoMessage,
        method: str,
        attribute: str = "result",
    ) -> None:
        """Have a model answer examples, and put its answers into an attribute of the response."""
        fill = _METHODS[method]

        def parse(version: Version) -> Parsed[None]:
            response.Clear()
            signature = version.signature(spec.signature_name)
            if method == _CLASSIFY:
                signature.check_classifies()
            else:
                signature.check_regresses()

            def encode(answers: Answers) -> None:
                fill(getattr(response, attribute), signature, answers)
                _fill_spec(response.model_spec, spec.name, version, signature)

            return Parsed(signature, self._read_examples(signature, given), encode)

        await self.plane.ask(inquiry, self._question(spec, given.ByteSize(), parse))

    def _read_examples(self, signature: ServedSignature, given: ProtoMessage) -> InputRows:
        if not signature.takes_examples:
            return rows_of_examples(signature.inputs, given, self.settings)
        limits.check_examples(given, self.settings)
        return signature.read_rows({EXAMPLES: serialize_examples(given)})


class ModelService(_ServingService):
    """Says which models are served, and takes the list of those to serve."""

    name = f"{SERVING}.ModelService"

    def calls(self) -> dict[str, Work]:
        return {"GetModelStatus": self.status, "HandleReloadConfigRequest": self.reload_config}

    async def status(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Say which versions answer."""
        spec = request.model_spec
        one = spec.HasField("version") or spec.version_label
        for version in [self.find_version(spec)] if one else self._versions(spec.name):
            status = response.model_version_status.add(version=version.number, state=_AVAILABLE)
            status.status.error_code = 0

    def _versions(self, name: str) -> list[Version]:
        try:
            return self.plane.models.working_versions(name)
        except RequestError as error:
            raise RequestError(
                error.status, f"Could not find any versions of model {name}: {error.line}"
            ) from None

    async def reload_config(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Serve the models of another list."""
        if not self.settings.reload_requests:
            raise RequestError(
                403, "clients may not choose the models: start the server with --allow-reload-requests"
            )
        try:
            sources = sources_of(request.config)
            loading = asyncio.get_running_loop().run_in_executor(
                None, self.plane.models.replace_sources, sources
            )
            await loading
        except StokerError as error:
            raise RequestError(400, str(error)) from None
        response.status.error_code = 0


def _fill_spec(spec: ProtoMessage, name: str, version: Version, signature: ServedSignature) -> None:
    spec.name = name
    spec.version.value = version.number
    spec.signature_name = signature.name


def _fill_classes(result: ProtoMessage, signature: ServedSignature, answers: Answers) -> None:
    for row in signature.rank_classes(answers):
        one = result.classifications.add()
        for label, score in row:
            one.classes.add(label=label, score=score)


def _fill_numbers(result: ProtoMessage, signature: ServedSignature, answers: Answers) -> None:
    for value in signature.take_numbers(answers):
        result.regressions.add(value=float(value))


_METHODS: dict[str, FillResult] = {_CLASSIFY: _fill_classes, _REGRESS: _fill_numbers}
