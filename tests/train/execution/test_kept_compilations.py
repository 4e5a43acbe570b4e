"""XLA's compilations kept between processes: taken by the next one, never wrong, bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stoker import compilations
from stoker.train.execution.kept_compilations import is_whole, make_key, make_room
from tests.support import ROOT, environment, run

pytestmark = pytest.mark.tensorflow

PROCESSOR = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Some Processor
cpu MHz\t\t: 2400.000
flags\t\t: fpu sse avx2 {more}

processor\t: 1
vendor_id\t: GenuineIntel
"""


@pytest.mark.slow
def test_the_next_process_takes_what_was_compiled_and_gets_the_same_bits(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.programs.keep_compilations", "kept", "kept", "off"],
        cwd=ROOT,
        env={**environment(), "STOKER_CACHE_DIR": str(tmp_path), "STOKER_STORE": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, off = (json.loads(line) for line in done.stdout.splitlines())
    assert first["bits"] == second["bits"] == off["bits"]
    assert (first["used"], second["used"], off["used"]) == (True, True, False)
    # The loop and its shorter last batch; nothing of what the program's own function compiled.
    assert len(first["kept"]) == 2
    assert second["kept"] == first["kept"]
    assert second["taken"]
    # TensorFlow's complaint about two settings that it takes for features of the processor.
    assert "SIGILL" not in done.stderr


def test_the_key_is_another_for_another_processor(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    keys = []
    for text in (
        PROCESSOR.format(more="avx512f"),
        PROCESSOR.format(more=""),
        PROCESSOR.format(more="").replace("Some Processor", "Another"),
        "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd sve\nCPU part\t: 0xd40\n",
    ):
        described.write_text(text)
        keys.append(make_key(described))
        # Clock rates change all the time.
        described.write_text(text.replace("2400.000", "800.000"))
        assert make_key(described) == keys[-1]
    described.unlink()
    assert len({*keys, make_key(described)}) == 5


def test_the_key_is_another_with_other_settings_of_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_key()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert make_key() != before
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    assert make_key() != before


def test_a_file_that_is_not_whole_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "entry.pb"
    whole = b"\x0a\x03key" + b"\x12\x80\x02" + b"m" * 256 + b"\x1a\x04code"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert not is_whole(path), size
    path.write_bytes(whole)
    assert is_whole(path)
    path.write_bytes(bytes(len(whole)))
    assert not is_whole(path)
    assert not is_whole(tmp_path / "gone.pb")


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    for number, name in enumerate(("a/old.pb", "b/older.pb", "a/new.pb", "b/newest.pb")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        at = 1_000_000 + (1 - number if number < 2 else number)
        os.utime(path, (at, at))
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"{dead.pid}-aa", f"{os.getpid()}-bb"):
        (tmp_path / "processes" / name).mkdir(parents=True)
        os.utime(tmp_path / "processes" / name, (1_000_000, 1_000_000))
    make_room(tmp_path, 200)
    assert {path.name for path in tmp_path.glob("*/*.pb")} == {"new.pb", "newest.pb"}
    assert [path.name for path in (tmp_path / "processes").iterdir()] == [f"{os.getpid()}-bb"]


SHOW = "import os, stoker; print(os.environ.get('TF_XLA_FLAGS', ''))"


def show_flags(directory: Path, monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """What a program finds in TensorFlow's variable once it has imported Stoker."""
    for name, value in {"STOKER_CACHE_DIR": str(directory / "cache"), **variables}.items():
        monkeypatch.setenv(name, value)
    (directory / "show.py").write_text(SHOW)
    return run([sys.executable, "show.py"], directory).stdout.strip()


def test_only_a_directory_is_named_when_stoker_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(compilations.SWITCH, raising=False)
    flags = show_flags(tmp_path, monkeypatch, TF_XLA_FLAGS="--tf_xla_auto_jit=1")
    own, named, _ = flags.split()
    assert own == "--tf_xla_auto_jit=1"
    assert named.startswith(f"--tf_xla_persistent_cache_directory={tmp_path}/cache/compilations/processes/")
    # A program that it starts has a directory of its own.
    inherited = show_flags(tmp_path, monkeypatch, TF_XLA_FLAGS=flags).split()
    assert (inherited[0], len(inherited), inherited[1] == named) == (own, 3, False)
    theirs = "--tf_xla_persistent_cache_directory=/theirs"
    assert show_flags(tmp_path, monkeypatch, TF_XLA_FLAGS=theirs) == theirs
    monkeypatch.delenv("TF_XLA_FLAGS")
    assert show_flags(tmp_path, monkeypatch, STOKER_KEEP_COMPILATIONS="0") == ""
    monkeypatch.delenv(compilations.SWITCH)
    (tmp_path / "pyproject.toml").write_text("[tool.stoker]\nkeep-compilations = false\n")
    assert show_flags(tmp_path, monkeypatch) == ""
    # Where nothing can be written, nothing is named: TensorFlow would fail.
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "file").write_text("")
    assert show_flags(tmp_path / ".", monkeypatch, STOKER_CACHE_DIR=str(tmp_path / "file" / "below")) == ""
