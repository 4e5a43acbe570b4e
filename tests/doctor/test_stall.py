"""The vocabulary, and where it stands: one module per stall."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import stoker.doctor.stalls
from stoker.doctor.stall import find_stall, is_known, stalls
from stoker.records import ACCOUNTS
from tests.support import ROOT, SRC

MODULES = Path(stoker.doctor.stalls.__file__).parent
CASES = MODULES / "cases"


def test_codes_are_unique_and_by_family() -> None:
    codes = [stall.code for stall in stalls().values()]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"STK[1-7]\d\d", code) for code in codes)
    assert stalls()["sync-in-loop"].code == "STK101"


def test_every_stall_can_be_explained() -> None:
    for stall in stalls().values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", stall.slug)
        assert stall.account in ACCOUNTS
        assert stall.title[0].isupper() or stall.title.startswith(("predict()", "fit()"))
        assert not stall.title.endswith(".")
        assert stall.remedy.endswith(".")
        assert stall.why
        assert stall.bad
        assert stall.good


def test_a_name_is_a_slug_a_code_a_family_or_all() -> None:
    assert all(is_known(name) for name in ("sync-in-loop", "STK101", "STK3", "ALL"))
    assert not any(is_known(name) for name in ("", "sync", "STK9", "stk101"))


def test_a_stall_can_be_found_without_the_others() -> None:
    assert find_stall("sync-in-loop") is stalls()["sync-in-loop"]
    assert find_stall("shared") is None
    assert find_stall("from-a-later-version") is None


def test_every_stall_is_the_module_named_after_it() -> None:
    files = {path.stem for path in MODULES.glob("*.py")} - {"__init__"}
    assert files == {slug.replace("-", "_") for slug in stalls()}
    assert files == {path.name for path in CASES.iterdir()}


def test_no_other_module_names_a_stall() -> None:
    """Prose may mention a slug; code that decides by one belongs to the stall's own module."""
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for path in SRC.rglob("*.py")
        if CASES not in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in stalls()
        and path != MODULES / f"{node.value.replace('-', '_')}.py"
    ]
    assert named == []


def test_loading_every_stall_imports_neither_a_framework_nor_the_measuring_half() -> None:
    """`stoker check` loads them all, and a pre-commit hook has next to nothing installed."""
    code = "import sys; from stoker.doctor.stall import stalls; stalls(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "stoker.doctor.stalls.sync_in_loop" in loaded
    assert loaded & {"tensorflow", "keras", "numpy", "rich", "stoker.records"} == set()
    assert (
        loaded & {"stoker.doctor.probes.recorder", "stoker.doctor.diagnosis", "stoker.doctor.pricing"}
        == set()
    )


def test_a_measured_program_loads_neither_the_interpreter_of_source_nor_the_software_gpu() -> None:
    """Its process imports what measures and all stalls, and the program pays for each module."""
    code = """
import sys
import stoker.doctor.measure.child
from stoker.doctor.stall import stalls
stalls()
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "stoker.doctor.probes.session" in loaded
    assert (
        loaded & {"stoker.doctor.check.source.machine", "stoker.doctor.software_gpu.build", "rich"} == set()
    )


def test_the_process_of_the_command_loads_no_probes() -> None:
    code = "import sys, stoker.cli.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "stoker.doctor.measure.launch" in loaded
    assert loaded & {"stoker.doctor.probes.session", "stoker.doctor.report.page.document"} == set()
