"""The vocabulary, and where it stands: one module per stall."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import stoker.doctor.stalls
from stoker.doctor.stall import is_known, stalls
from stoker.records import ACCOUNTS

MODULES = Path(stoker.doctor.stalls.__file__).parent
CASES = MODULES / "cases"


def test_codes_are_unique_and_by_family() -> None:
    codes = [stall.code for stall in stalls().values()]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"STK[1-6]\d\d", code) for code in codes)
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


def test_every_stall_is_the_module_named_after_it() -> None:
    files = {path.stem for path in MODULES.glob("*.py")} - {"__init__"}
    assert files == {slug.replace("-", "_") for slug in stalls()}
    assert files == {path.name for path in CASES.iterdir()}


def test_loading_every_stall_imports_no_framework() -> None:
    code = (
        "import sys; from stoker.doctor.stall import stalls; assert stalls(); "
        "print(sorted({'tensorflow', 'keras', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
