"""TensorFlow Serving's list of models: `--model_config_file`, and requests that replace it."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import text_format

from stoker.errors import UsageError
from stoker.serve.grpc.messages import serving_message
from stoker.serve.plane.models import ModelSource
from stoker.serve.plane.settings import VersionPolicy
from stoker.tf_internals.types import ProtoMessage

_FORMATS = ("", "tensorflow")


def read_config(file: str) -> dict[str, ModelSource]:
    """Read the models that a file lists.

    Raises:
        UsageError: the file cannot be read, or is not such a list.
    """
    return sources_of(read_text_message(file, "ModelServerConfig"))


def read_text_message(file: str, name: str) -> ProtoMessage:
    """Read a message of TensorFlow Serving that a file holds as text.

    Raises:
        UsageError: the file cannot be read, or holds something else.
    """
    made = serving_message(name)
    try:
        text_format.Parse(Path(file).read_text(encoding="utf-8"), made)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise UsageError(f"Error parsing text-format tensorflow.serving.{name}: {file}: {error}") from None
    return made


def sources_of(config: ProtoMessage) -> dict[str, ModelSource]:
    """Return the models of a list.

    Raises:
        UsageError: a model has no name, no path, another format, or the same name as another.
    """
    if config.WhichOneof("config") == "custom_model_config":
        raise UsageError("custom_model_config is not supported: use model_config_list")
    found: dict[str, ModelSource] = {}
    for one in config.model_config_list.config:
        if not one.name or not one.base_path:
            raise UsageError("a model of model_config_list needs a name and a base_path")
        if one.name in found:
            raise UsageError(f"model_config_list has two models named {one.name!r}")
        if one.model_platform not in _FORMATS:
            raise UsageError(f"model {one.name!r}: model_platform {one.model_platform!r} is not supported")
        found[one.name] = ModelSource(Path(one.base_path), _policy_of(one))
    return found


def _policy_of(config: ProtoMessage) -> VersionPolicy:
    """Return which versions to load: the newest one, unless the list says otherwise."""
    policy, labels = config.model_version_policy, dict(config.version_labels)
    kind = policy.WhichOneof("policy_choice")
    if kind == "all":
        return VersionPolicy(labels=labels)
    if kind == "specific":
        return VersionPolicy(specific=tuple(policy.specific.versions), labels=labels)
    return VersionPolicy(latest=max(1, policy.latest.num_versions), labels=labels)
