"""The tutorials at work: their stalls and their probe, put into a copy of the package.

A stall is one file and its cases. A probe is its file, its part and one entry in the list of probes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, SRC

DETECTED = """
from stoker.doctor.diagnosis.findings import findings
from stoker.doctor.pricing.claims import repair_of
from stoker.doctor.probes.parts.summaries import SummariesPart
from stoker.doctor.probes.recorder import Tally
from tests.samples import measurements

part = SummariesPart({("train.py", 18, "train"): Tally(count=100, ns=10**9, lost_ns=10**9)})
(found,) = findings(measurements(part))
print(found.kind, found.code, found.remedy, repair_of(found.kind).assumes)
"""


def code_of(tutorial: str) -> list[str]:
    text = (ROOT / "docs" / "tutorials" / tutorial).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the two stalls and the probe in it, and the probe's test beside it."""
    root = tmp_path_factory.mktemp("package")
    shutil.copytree(SRC, root / "stoker", ignore=shutil.ignore_patterns("__pycache__"))
    stalls = root / "stoker" / "doctor" / "stalls"
    _, rule, bad, good = code_of("add-a-rule.md")
    _, place, part, probe, test, detector, _ = code_of("add-a-probe.md")
    probes = root / "stoker" / "doctor" / "probes"
    (root / "stoker" / "tf_internals" / "summaries.py").write_text(place, encoding="utf-8")
    (probes / "parts" / "summaries.py").write_text(part, encoding="utf-8")
    (probes / "summaries.py").write_text(probe, encoding="utf-8")
    (root / "test_summaries.py").write_text(test, encoding="utf-8")
    listing = (probes / "session.py").read_text(encoding="utf-8")
    above = "from stoker.doctor.probes.transfer import Transfer\n"
    listing = listing.replace(above, f"from stoker.doctor.probes.summaries import Summaries\n{above}")
    entry = "            Checkpoints(recorder),\n"
    listing = listing.replace(entry, f"{entry}            Summaries(recorder),\n")
    (probes / "session.py").write_text(listing, encoding="utf-8")
    for name, code in (("clear_session_in_loop", rule), ("summary_in_loop", detector)):
        (stalls / f"{name}.py").write_text(code, encoding="utf-8")
        (stalls / "cases" / name).mkdir()
        (stalls / "cases" / name / "bad_1.py").write_text(bad, encoding="utf-8")
        (stalls / "cases" / name / "good_1.py").write_text(good, encoding="utf-8")
    return root


def python(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_rule_reports_its_case_and_has_a_page(package: Path) -> None:
    cases = "stoker/doctor/stalls/cases/clear_session_in_loop"
    only = ("-m", "stoker", "check", "--no-cache", "--format", "concise", "--select", "clear-session-in-loop")
    done = python(package, *only, cases)
    assert done.stdout.splitlines() == [
        f"{cases}/bad_1.py:5:5: STK507 clear-session-in-loop: Keras' global state is cleared at every step"
    ]
    page = python(package, "-m", "stoker", "explain", "STK507")
    assert "Call clear_session() once, between two models." in page.stdout


def test_the_detector_finds_it_and_the_repair_prices_it(package: Path) -> None:
    done = python(package, "-c", DETECTED)
    assert done.stdout.startswith("summary-in-loop STK508 Write them every N steps. summaries: "), done.stderr


@pytest.mark.slow
@pytest.mark.tensorflow
def test_the_probe_passes_its_own_tests(package: Path) -> None:
    fixtures = ("-p", "tests.doctor.probes.conftest", "-p", "no:cacheprovider")
    done = python(package, "-m", "pytest", "-q", *fixtures, "test_summaries.py")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
