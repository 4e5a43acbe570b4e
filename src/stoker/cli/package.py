"""Write what you need to build and run an image of a bundle: Dockerfile, pinned wheels, compose file, manifests.

    stoker package bundle/ -o image/ --name pets
    stoker package bundle/ -o image/ --device cuda
    stoker package train.py -o image/ --include models.py --requirements requirements.txt

For a training program it is an image that trains. pip downloads the wheels, each pinned by its hash. The build then
needs the network only for the base image, and fails unless the bundle gives its recorded answers inside it. Exit code:
0; 2 for a bad request, in which case nothing is left behind.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from stoker import units
from stoker.cli._options import local_path
from stoker.cli._trust import add_trust, trust_of
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.serve import bundle
from stoker.serve.packaging.writing import PackageOptions, package_bundle, package_program


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker package`."""
    parser.add_argument(
        "path", type=local_path, metavar="PATH", help="a bundle, or a Python program that trains"
    )
    parser.add_argument(
        "-o", "--output", type=local_path, metavar="DIR", required=True, help="the directory to make"
    )
    parser.add_argument("--name", help="the model's name in manifests and addresses (from the path)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="what it runs on (cpu)")
    parser.add_argument(
        "--base", default="", metavar="IMAGE", help="the base image (python:3.x-slim-bookworm)"
    )
    parser.add_argument(
        "--python", default=PackageOptions.python, metavar="3.x", help="the Python version (this one)"
    )
    parser.add_argument("--image", default="", metavar="NAME", help="the image's name (NAME:VERSION)")
    parser.add_argument("--port", type=int, default=8501, help="where a server listens (8501)")
    parser.add_argument(
        "--wheelhouse",
        type=local_path,
        metavar="DIR",
        help="use the wheels in this directory instead of downloading them",
    )
    parser.add_argument(
        "--requirements",
        type=local_path,
        metavar="FILE",
        help="a requirements file with more packages to install",
    )
    parser.add_argument(
        "--include",
        type=local_path,
        action="append",
        default=[],
        metavar="PATH",
        help="more files the program needs; may be repeated",
    )
    add_trust(parser)
    parser.add_argument("--force", action="store_true", help="replace an existing package")


def run(args: argparse.Namespace) -> int:
    """Write the package, and say what was written."""
    path, target = Path(args.path), Path(args.output)
    if not path.exists():
        raise UsageError(f"there is no {path}")
    name = args.name or _name(path)
    if path.is_dir():
        path = bundle.locate(path)
    if args.include and path.is_dir():
        raise UsageError("--include is for programs only: a bundle is complete")
    options = PackageOptions(
        name,
        device=args.device,
        base=args.base,
        python=args.python,
        image=args.image,
        port=args.port,
        wheels=None if args.wheelhouse is None else Path(args.wheelhouse),
        requirements=_requirements(args.requirements),
        trust=trust_of(args),
    )
    if path.is_dir():
        image = package_bundle(path, target, options, args.force)
    elif path.suffix == ".py":
        image = package_program(path, target, options, [Path(one) for one in args.include], args.force)
    else:
        raise UsageError(f"{path} is neither a bundle nor a Python program")
    size = sum(one.stat().st_size for one in target.rglob("*") if one.is_file())
    wheels = units.quantity(len(list((target / "wheelhouse").iterdir())), "wheel")
    print_answer(f"{target}: {wheels}, {units.size(size)}; build it with: docker build -t {image} {target}")
    return 0


def _name(path: Path) -> str:
    """Return the path's own name, reduced to what Kubernetes accepts."""
    plain = re.sub(r"[^a-z0-9]+", "-", path.resolve().stem.lower()).strip("-")
    return plain if re.match("[a-z]", plain) else f"model-{plain}".strip("-")


def _requirements(file: str | None) -> list[str]:
    if file is None:
        return []
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    found = [line.partition(" #")[0].strip() for line in lines]
    odd = [line for line in found if line.startswith("-")]
    if odd:
        raise UsageError(f"{file}: {odd[0]!r} is an option; only requirements are allowed")
    return [line for line in found if line and not line.startswith("#")]
