"""Make the pictures in docs/images: `make screenshots`.

Runs the demo and its repaired twin under Stoker and photographs their pages in headless Chromium: the page on a desk
in the light and on a phone in the dark, and the comparison of the two runs. Then a small study, and `stoker ui` over
it: the list, a run with its ledger, a comparison, a run on a phone. `make screenshots ONLY=ui` makes only those.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.doctor.report.page.browser import CHROMIUM, DRIVER, MISSING, Browser, browser

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"


# Three trainings, each long enough for a ledger over time.
STUDY = """
import keras, numpy as np, stoker
x = np.random.default_rng(1).normal(size=(12_000, 64)).astype("float32")
y = np.tanh(x[:, :1]) + x[:, 1:2] * x[:, 2:3]
with stoker.track("learning rates") as study:
    for rate in (0.002, 0.01, 0.05):
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Dense(128, "relu") for _ in range(2)]
        model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(1)], name=f"rate_{rate}")
        model.compile(keras.optimizers.SGD(rate), "mse")
        stoker.fit(model, x, y, batch_size=64, epochs=40, validation_split=0.1, verbose=0, plan="40, none")
        model.save(f"model-{rate}.keras")
        study.artifact(f"model-{rate}.keras", kind="model")
"""


def main() -> None:
    """Run, draw, photograph."""
    if not (CHROMIUM and DRIVER):
        sys.exit(MISSING)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        if "ui" not in sys.argv[1:]:
            pages(Path(name), chromium)
        site(Path(name) / "study", chromium)
    for path in sorted(IMAGES.glob("*.webp")):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e3:.0f} kB")


def pages(directory: Path, chromium: Browser) -> None:
    """The pages of the demo."""
    for program in ("demo", "demo_fixed"):
        (directory / f"{program}.py").write_text((ROOT / "examples" / f"{program}.py").read_text())
        stoker(directory, "run", "--quiet", "--html", f"{program}.html", f"{program}.py")
    records = sorted(path.stem for path in (directory / ".stoker" / "runs").glob("*.json"))
    stoker(directory, "compare", *records, "--html", "compare.html")
    chromium.open(directory / "demo.html", 1080, 2000, "light")
    photograph(chromium, "page.webp", 1080, 2000)
    photograph(chromium, "page-top.webp", 1080, 820)
    chromium.open(directory / "demo.html", 400, 1500, "dark", scale=1.5)
    photograph(chromium, "page-on-a-phone.webp", 400, 1500)
    chromium.open(directory / "compare.html", 1080, 1100, "dark")
    photograph(chromium, "compare.webp", 1080, 1100)


def site(directory: Path, chromium: Browser) -> None:
    """`stoker ui` over a study."""
    directory.mkdir()
    (directory / "study.py").write_text(STUDY)
    stoker(directory, "run", "--quiet", "study.py")
    command = [sys.executable, "-m", "stoker", "ui"]
    server = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()
    entrance = server.stdout.readline().strip()
    url = entrance.split("?")[0]
    listed = subprocess.run(
        [sys.executable, "-m", "stoker", "runs", "--json", "--where", "kind = train", "--sort", "name"],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
    )
    ids = [run["id"] for run in json.loads(listed.stdout)]
    try:
        chromium.open(entrance)
        views = (
            ("ui-list.webp", "", 1100, 520, "light"),
            ("ui-run.webp", f"run/{ids[0]}", 1100, 1240, "light"),
            ("ui-compare.webp", f"compare/{','.join(ids)}", 1100, 1280, "dark"),
            ("ui-on-a-phone.webp", f"run/{ids[0]}", 400, 1000, "dark"),
        )
        for name, view, width, height, scheme in views:
            chromium.driver.get("about:blank")
            chromium.open(f"{url}#/{view}", width, height, scheme)
            chromium.until("!document.querySelector('.loading')")
            chromium.until("document.querySelector('canvas, .spark polyline') !== null")
            photograph(chromium, name, width, height)
    finally:
        server.terminate()
        server.wait()


def stoker(directory: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "stoker", *words], cwd=directory, check=True, stderr=subprocess.DEVNULL
    )


def photograph(chromium: Browser, name: str, width: int, height: int) -> None:
    chromium.settle()
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    made = chromium.cdp("Page.captureScreenshot", format="webp", quality=82, clip=clip)
    (IMAGES / name).write_bytes(base64.b64decode(made["data"]))


if __name__ == "__main__":
    main()
