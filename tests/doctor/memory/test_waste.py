"""Findings about memory: one program that has them all, and its twin that has none, both on the software GPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stoker.doctor.stall import stalls
from tests.support import ROOT, no_software_gpu, run_plain, run_stoker

pytest.importorskip("tensorflow")
if missing := no_software_gpu():
    pytest.skip(missing, allow_module_level=True)

PROGRAMS = Path(__file__).parent / "programs"
MIB = 1 << 20
# What saves how much, at least and at most, and the line.
EXPECTED = {
    # 320 steps of 1 MiB: how much of it the last look saw depends on the machine.
    "growing-tensor-list": (8 * MIB, 320 * MIB, "self.kept.append"),
    "array-held-twice": (64 * MIB, 64 * MIB, "from_tensor_slices"),
    "large-constant-dataset": (64 * MIB, 64 * MIB, "from_tensor_slices"),
    # Keras traces a function for training and one for validation.
    "array-in-graph": (32 * MIB, 32 * MIB, "tf.gather(table"),
    # Two numbers for each of 8192 * 256 weights.
    "frozen-slots": (16 * MIB, 17 * MIB, "optimizer = "),
    # A batch of 2048 rows of 8192 numbers, and one more that was fetched ahead.
    "large-validation-batch": (32 * MIB, 300 * MIB, "model.fit"),
    # 256 * 2048 weights of 8 bytes with two slots, and some of the step's: half of that.
    "float64-compute": (4 * MIB, 32 * MIB, 'dtype="float64"'),
}


@cache
def _findings(directory: Path, program: str) -> tuple[dict[str, dict[str, Any]], list[str], str]:
    """The findings about memory by kind, the order of all kinds, and the report."""
    (directory / f"{program}.py").write_text((PROGRAMS / f"{program}.py").read_text(encoding="utf-8"))
    options = ("--experiments", "off", "--device", "software-gpu", "--device-memory", "2GiB")
    outcome = run_stoker(directory, *options, f"{program}.py")
    assert outcome.code == 0, outcome.stderr
    assert outcome.record is not None
    found = outcome.record["findings"]
    about_memory = {one["kind"]: one for one in found if stalls()[one["kind"]].holds_memory}
    return about_memory, [one["kind"] for one in found], outcome.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("waste")


@pytest.mark.slow
def test_each_way_to_waste_memory_is_named_with_its_line_and_its_bytes(directory: Path) -> None:
    found, _, report = _findings(directory, "wasteful")
    lines = (PROGRAMS / "wasteful.py").read_text(encoding="utf-8").splitlines()
    assert set(found) == set(EXPECTED)
    for kind, (least, most, text) in EXPECTED.items():
        finding = found[kind]
        assert text in lines[finding["line"] - 1], (kind, finding["line"])
        assert least <= finding["bytes_saved"] <= most, (kind, finding["bytes_saved"])
        assert finding["lost_s"] is None
        assert finding["what_if"] is None
    assert found["growing-tensor-list"]["detail"]["bytes_per_step"] == pytest.approx(MIB, rel=0.25)
    assert found["array-held-twice"]["detail"]["copies"] == 2
    assert "with tf.device('CPU:0')" in found["large-constant-dataset"]["remedy"]
    said = " ".join(report.split())
    assert "64.0 MiB of memory" in said
    assert "2 copies of 64.0 MiB" in said


def test_what_costs_time_comes_first_and_then_most_bytes(directory: Path) -> None:
    found, kinds, _ = _findings(directory, "wasteful")
    in_order = [kind for kind in kinds if kind in found]
    assert kinds[-len(in_order) :] == in_order
    saved = [found[kind]["bytes_saved"] for kind in in_order]
    assert saved == sorted(saved, reverse=True)


@pytest.mark.slow
def test_a_program_that_holds_what_it_needs_has_no_such_finding(directory: Path) -> None:
    found, _, _ = _findings(directory, "thrifty")
    assert found == {}


@pytest.mark.slow
def test_the_example_of_a_leak_is_named_on_a_plain_cpu(tmp_path: Path) -> None:
    example = ROOT / "examples" / "memory" / "growing_list.py"
    outcome = run_stoker(tmp_path, "--experiments", "off", str(example))
    assert outcome.record is not None
    (found,) = [one for one in outcome.record["findings"] if stalls()[one["kind"]].holds_memory]
    (marked,) = [
        number for number, line in enumerate(example.read_text().splitlines(), 1) if "# <-- the leak" in line
    ]
    assert (found["kind"], found["line"]) == ("growing-tensor-list", marked)
    assert found["detail"]["device"] == "/CPU:0"
    fixed = run_plain(tmp_path, str(example.with_name("growing_list_fixed.py")))
    assert (fixed.code, fixed.stdout) == (0, outcome.stdout)
