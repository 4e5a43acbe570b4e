"""Images built and run for real: a bundle's answers are the recorded ones, a program trains; both without rights.

    make soak-package
    python benchmarks/soak_package.py --keep /var/tmp/image

buildah builds in a chroot, so no Docker engine is needed; the base is a minimal Debian with Python, made by
mmdebstrap. It needs root, both programs, and the network for Debian's packages and for wheels.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
BASE = "localhost/stoker-base"
PROGRAM = """
import keras, numpy as np, stoker
x = np.random.default_rng(0).random((256, 8), "float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = stoker.fit(model, x, x.sum(-1, keepdims=True), epochs=3, verbose=0)
model.save("model.keras")
print("trained", history.history["loss"][0] > history.history["loss"][-1])
"""
PORT = 9201


def exported(path: Path) -> None:
    """A small classifier with labels."""
    import keras

    import stoker

    keras.utils.set_random_seed(1)
    layers = [
        keras.Input((8,), name="x"),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(3, activation="softmax"),
    ]
    stoker.export(keras.Sequential(layers), path, labels=["cat", "dog", "eel"])


class Builder:
    """buildah, with images of its own."""

    def __init__(self, directory: Path) -> None:
        self._where = [
            "--storage-driver",
            "vfs",
            "--root",
            str(directory / "images"),
            "--runroot",
            str(directory / "run"),
        ]

    def command(self, *words: str) -> list[str]:
        return ["buildah", *self._where, *words]

    def __call__(self, *words: str) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"buildah {' '.join(words)}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout.strip()


def base(builder: Builder, directory: Path) -> None:
    """A minimal Debian with Python."""
    tree = directory / "base.tar"
    packages = "python3-minimal,python3-venv"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", "bookworm", str(tree)],
        check=True,
    )
    container = builder("from", "scratch")
    builder("add", container, str(tree), "/")
    builder("commit", "--rm", container, BASE)


def answered(rows: Any) -> Any:
    """Ask the server in the image."""
    body = json.dumps({"inputs": {"x": rows}}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/models/pets:predict", body)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["outputs"]


def compared(bundle: Path) -> float:
    """The recorded examples, asked of the image; how far its answers are off."""
    import numpy as np

    from stoker.serve import examples

    inputs, wanted = examples.read(bundle / "examples.npz")
    found = answered(inputs["x"].tolist())
    assert found["label"] == [one.decode() for one in wanted["label"]], "the labels differ"
    return float(np.abs(np.array(found["scores"]) - wanted["scores"]).max())


def served(builder: Builder, bundle: Path) -> None:
    container = builder("from", "--pull-never", "pets")
    who = builder(
        "run", "--isolation", "chroot", container, "--", "python3", "-c", "import os; print(os.getuid())"
    )
    words = ["pets=/models/model", "--host", "127.0.0.1", "--port", str(PORT)]
    server = subprocess.Popen(
        builder.command("run", "--isolation", "chroot", container, "--", "stoker", "serve", *words),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        for line in server.stderr:
            print(f"  {line.rstrip()}")
            if "ready" in line:
                break
        for _ in range(50):
            try:
                off = compared(bundle)
                break
            except OSError:
                time.sleep(0.2)
        print(f"as user {who}, the recorded examples give their answers over REST: off by {off:.1g} at most")
        change = "import pathlib; pathlib.Path('/opt/stoker/x').write_text('x')"
        denied = subprocess.run(
            builder.command("run", "--isolation", "chroot", container, "--", "python3", "-c", change),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "PermissionError" in denied.stderr, denied.stderr
        print("it cannot change what is installed")
    finally:
        server.terminate()
        server.wait()


def trained(builder: Builder, directory: Path) -> None:
    """An image that trains, from the same wheels."""
    (directory / "train.py").write_text(PROGRAM)
    target = directory / "training"
    words = ["package", str(directory / "train.py"), "-o", str(target), "--base", BASE, "--force"]
    wheels = ["--wheelhouse", str(directory / "package" / "wheelhouse")]
    subprocess.run([sys.executable, "-m", "stoker", *words, *wheels], check=True)
    built(builder, "train", target)
    container = builder("from", "--pull-never", "train")
    program = ["stoker", "run", "/program/train.py"]
    said = builder("run", "--isolation", "chroot", container, "--", *program)
    assert "trained True" in said, said
    check = "import pathlib; print(sorted(p.name for p in pathlib.Path('/work').iterdir()))"
    left = builder("run", "--isolation", "chroot", container, "--", "python3", "-c", check)
    print(f"it trained, and left {left} in its volume")


def built(builder: Builder, name: str, place: Path) -> None:
    """Build an image, and say what it took."""
    started = time.monotonic()
    builder("bud", "--isolation", "chroot", "--pull-never", "--format", "docker", "-t", name, str(place))
    size = json.loads(builder("images", "--json", name))[0]["size"]
    print(f"{name}: built in {time.monotonic() - started:.0f} s; the image has {size}")


def main() -> None:
    """Export, package, build, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", help="a directory to leave everything in")
    args = parser.parse_args()
    missing = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        sys.exit(
            f"it needs root, and Debian's packages buildah and mmdebstrap (missing: {', '.join(missing) or 'none'})"
        )
    directory = Path(args.keep or tempfile.mkdtemp(prefix="stoker-image-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        bundle, package = directory / "bundle", directory / "package"
        exported(bundle)
        words = ["package", str(bundle), "-o", str(package), "--name", "pets", "--base", BASE, "--force"]
        subprocess.run([sys.executable, "-m", "stoker", *words], check=True)
        builder = Builder(directory)
        started = time.monotonic()
        base(builder, directory)
        print(f"base: {time.monotonic() - started:.0f} s")
        built(builder, "pets", package)
        served(builder, bundle)
        trained(builder, directory)
    finally:
        if not args.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
