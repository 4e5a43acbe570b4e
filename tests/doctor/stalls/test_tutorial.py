"""Adding a stall is one file and its cases: the tutorials' own stalls, put into a copy of the package."""

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
from stoker.doctor.probes.recorder import Tally
from tests.samples import measurements

tallies = {"summary": {("train.py", 18, "train"): Tally(count=100, ns=10**9, lost_ns=10**9)}}
(found,) = findings(measurements(tallies=tallies))
print(found.kind, found.code, found.remedy, repair_of(found.kind).assumes)
"""


def code_of(tutorial: str) -> list[str]:
    text = (ROOT / "docs" / "tutorials" / tutorial).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the two stalls in it."""
    root = tmp_path_factory.mktemp("package")
    shutil.copytree(SRC, root / "stoker", ignore=shutil.ignore_patterns("__pycache__"))
    stalls = root / "stoker" / "doctor" / "stalls"
    _, rule, bad, good = code_of("add-a-rule.md")
    (detector,) = (code for code in code_of("add-a-probe.md") if "STALL = " in code)
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
