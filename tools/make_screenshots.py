"""Make the pictures of the page in docs/images: `make screenshots`.

Runs the demo and its repaired twin under Stoker and photographs their pages in headless Chromium: the page on a desk
in the light and on a phone in the dark, and the comparison of the two runs.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.report.page.browser import CHROMIUM, DRIVER, MISSING, Browser, browser

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """Run, draw, photograph."""
    if not (CHROMIUM and DRIVER):
        sys.exit(MISSING)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        directory = Path(name)
        for program in ("demo", "demo_fixed"):
            (directory / f"{program}.py").write_text((ROOT / "examples" / f"{program}.py").read_text())
            stoker(directory, "run", "--quiet", "--html", f"{program}.html", f"{program}.py")
        records = sorted(path.stem for path in (directory / ".stoker" / "runs").glob("*.json"))
        stoker(directory, "compare", *records, "--html", "compare.html")
        chromium.open(directory / "demo.html", 1080, 2000, "light")
        photograph(chromium, "page.webp", 1080, 2000)
        chromium.open(directory / "demo.html", 400, 1500, "dark", scale=1.5)
        photograph(chromium, "page-on-a-phone.webp", 400, 1500)
        chromium.open(directory / "compare.html", 1080, 1100, "dark")
        photograph(chromium, "compare.webp", 1080, 1100)
    for path in sorted(IMAGES.glob("*.webp")):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e3:.0f} kB")


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
