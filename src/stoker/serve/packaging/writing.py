"""Write a package: the bundle or the program, its wheels, and the files from which an image is built and run."""

from __future__ import annotations

import math
import platform
import re
import shutil
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import signing, version
from stoker.errors import UsageError
from stoker.serve import bundle
from stoker.serve.engines import converted
from stoker.serve.packaging import wheelhouse
from stoker.serve.placing import make_beside
from stoker.serve.safety.opening import Trust, read_checked

if TYPE_CHECKING:
    from importlib.abc import Traversable

MARK = "Dockerfile"
_DISTRIBUTION = {"cpu": "tensorflow-cpu", "cuda": "tensorflow[and-cuda]"}
_GPU_ENVIRONMENT = " \\\n    NVIDIA_VISIBLE_DEVICES=all \\\n    NVIDIA_DRIVER_CAPABILITIES=compute,utility"
_GPU_COMPOSE = """
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]"""


@dataclass(frozen=True)
class PackageOptions:
    """The options of a package.

    Attributes:
        device: "cpu" or "cuda".
        base: the image to build on; by default Python's slim image on Debian.
        python: the version of Python in the image.
        name: the name of the model or the training, in manifests and addresses.
        image: the name of the image; by default, `name` with a version.
        port: where a server listens.
        wheels: a directory with the wheels; by default they are downloaded.
        requirements: further requirements, in pip's syntax.
        trust: what the bundle may contain, and who must have signed it, here and in the image.
    """

    name: str
    device: str = "cpu"
    base: str = ""
    python: str = ".".join(platform.python_version_tuple()[:2])
    image: str = ""
    port: int = 8501
    wheels: Path | None = None
    requirements: Sequence[str] = ()
    trust: Trust = field(default_factory=Trust)

    def check(self) -> None:
        """Raise UsageError if an option makes no sense."""
        if not re.fullmatch(r"[a-z]([-a-z0-9]{0,51}[a-z0-9])?", self.name):
            raise UsageError(
                f"--name {self.name!r}: use at most 53 lowercase letters, digits and '-', as Kubernetes requires"
            )
        if not re.fullmatch(r"3\.\d+", self.python):
            raise UsageError(f"--python {self.python!r} must be a version such as 3.11")
        if not 1 <= self.port <= 65535:
            raise UsageError(f"--port {self.port} must be between 1 and 65535")


def package_bundle(path: Path, target: Path, options: PackageOptions, overwrite: bool) -> str:
    """Write everything for an image that serves a bundle.

    Returns:
        The name of the image in the compose file and the manifests; by default, with the bundle's version.

    Raises:
        BundleError: the path is not a bundle, or the bundle was changed.
        UsageError: an option makes no sense, or the wheels cannot be found.
    """
    options.check()
    # Nothing of the bundle is loaded here; its graphs are checked when the image is built, and when it starts.
    known = read_checked(path, options.trust)
    options = replace(options, image=options.image or f"{options.name}:{known.version}")
    versions = known.description.get("versions", {})
    signed = ",sign" if options.trust.public_key else ""
    wanted = [
        f"stoker[serve{signed}]=={version.__version__}",
        f"{_DISTRIBUTION[options.device]}=={_pin(known, versions, 'tensorflow')}",
        f"keras=={_pin(known, versions, 'keras')}",
        *(_runtime(name) for name in converted.names_of(known)),
        *options.requirements,
    ]
    title = re.sub(r"[^ -~]+", " ", str(known.description.get("model", "a model")))
    flags = _flags(options.trust)
    words = {
        "title": f"{title}, version {known.version}, served by stoker {version.__version__}",
        # For TensorFlow itself, and the weights in every engine that is compared.
        "memory": f"{1024 + 256 * math.ceil(4 * known.weight_bytes / (256 << 20))}Mi",
        "trust": "".join(f" {word}" for word in flags),
        "trust_list": "".join(f', "{word}"' for word in flags),
    }
    _check_target(target, overwrite)
    with make_beside(target) as place:
        shutil.copytree(path, place / "bundle")
        _finish(place, "serve", options, wanted, words)
    return options.image


def _pin(known: bundle.Bundle, versions: Mapping[str, object], name: str) -> str:
    """Pin the version that the bundle was proven with; it is checked because it becomes an argument of pip."""
    found = versions.get(name)
    if not isinstance(found, str) or not re.fullmatch(r"[\w.+-]{1,40}", found, re.ASCII):
        raise bundle.BundleError(f"{known.path} does not say which version of {name} it was proven with")
    return found


def _flags(trust: Trust) -> list[str]:
    """Return the options that `stoker serve` and `stoker bundle` need in the image."""
    for name in trust.allow_ops:
        if not re.fullmatch(r"\w+", name, re.ASCII):
            raise UsageError(f"--allow-ops {name!r} is not the name of an operation")
    flags = ["--allow-ops", ",".join(trust.allow_ops)] if trust.allow_ops else []
    if trust.public_key:
        # Passed as text, as the image has no file for it.
        flags += ["--require-signature", signing.read_public_key(trust.public_key)]
    return flags


def package_program(
    file: Path, target: Path, options: PackageOptions, include: Sequence[Path], overwrite: bool
) -> str:
    """Write everything for an image that trains.

    Returns:
        The name of the image in the compose file and the manifests.

    Raises:
        UsageError: there is no such file, an option makes no sense, or the wheels cannot be found.
    """
    options.check()
    for one in (file, *include):
        if not one.exists():
            raise UsageError(f"there is no {one}")
    options = replace(options, image=options.image or f"{options.name}:{version.__version__}")
    wanted = [
        f"stoker=={version.__version__}",
        f"{_DISTRIBUTION[options.device]}=={_installed_version('tensorflow-cpu', 'tensorflow')}",
        f"keras=={_installed_version('keras')}",
        *options.requirements,
    ]
    words = {
        "title": f"{file.name}, trained by stoker {version.__version__}",
        "program": file.name,
        "memory": "4Gi",
    }
    _check_target(target, overwrite)
    with make_beside(target) as place:
        (place / "program").mkdir()
        for one in (file, *include):
            copy = shutil.copytree if one.is_dir() else shutil.copy
            copy(one, place / "program" / one.name)
        _finish(place, "train", options, wanted, words)
    return options.image


def _runtime(engine: str) -> str:
    """Return the engine's runtime, pinned to the version installed here."""
    name = converted.RUNTIMES[engine].replace("_", "-")
    return f"{name}=={_installed_version(name)}"


def _installed_version(*names: str) -> str:
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise UsageError(f"stoker package needs {names[0]} installed, to pin the version that is used here")


def _finish(
    place: Path, kind: str, options: PackageOptions, wanted: list[str], words: dict[str, str]
) -> None:
    wheels = place / "wheelhouse"
    if options.wheels is not None:
        if not options.wheels.is_dir():
            raise UsageError(f"there is no directory {options.wheels}")
        # Packages that depend on TensorFlow's version, such as Keras, come with it.
        pinned = wheelhouse.pin_wheels(options.wheels, [*wanted[:2], *options.requirements])
        shutil.copytree(options.wheels, wheels)
    else:
        wheelhouse.fill(wheels, wanted, options.python)
        pinned = wheelhouse.pin_wheels(wheels)
    (place / "requirements.txt").write_text(pinned, encoding="utf-8")
    gpu = options.device == "cuda"
    words |= {
        "name": options.name,
        "image": options.image,
        "base": options.base or f"python:{options.python}-slim-bookworm",
        "port": str(options.port),
        "environment": _GPU_ENVIRONMENT if gpu else "",
        "compose_gpu": _GPU_COMPOSE if gpu else "",
        "limit_gpu": f"\n{' ' * 14}nvidia.com/gpu: 1" if gpu else "",
        "limit_gpu_kserve": f"\n{' ' * 12}nvidia.com/gpu: 1" if gpu else "",
    }
    templates = resources.files(__package__).joinpath("templates")
    for name, template in _files(templates.joinpath(kind)):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(string.Template(template).substitute(words), encoding="utf-8")
    ignored = templates.joinpath("dockerignore").read_text(encoding="utf-8")
    (place / ".dockerignore").write_text(ignored, encoding="utf-8")


def _files(directory: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for one in directory.iterdir():
        if one.is_dir():
            yield from _files(one, f"{above}{one.name}/")
        else:
            yield f"{above}{one.name}", one.read_text(encoding="utf-8")


def _check_target(target: Path, overwrite: bool) -> None:
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        if not (target / MARK).is_file():
            raise UsageError(f"{target} exists and is not a package; choose another path")
        if not overwrite:
            raise UsageError(f"{target} exists; --force replaces it")
