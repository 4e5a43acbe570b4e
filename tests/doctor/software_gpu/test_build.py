"""Building, caching and configuring: what happens before TensorFlow is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stoker.doctor.software_gpu import activation, build
from stoker.doctor.software_gpu.profiles import PROFILES, resolve
from stoker.errors import StokerError, UsageError

TENSORFLOW = build.TensorFlow("tensorflow-cpu", "9.9.9", Path("/nowhere"))


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build, "installed_tensorflow", lambda: TENSORFLOW)
    return tmp_path


def fake_compiler(directory: Path, script: str) -> str:
    path = directory / "fake-compiler"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


# Writes the file after -o, and one line per call beside itself.
WRITES = 'echo "$@" >> "$0.log"; while [ "$1" != "-o" ]; do shift; done; sleep 0.2; echo built > "$2"'


def test_importing_the_package_does_not_import_tensorflow() -> None:
    code = "import sys, stoker, stoker.software_gpu; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_build_is_made_once_and_named_after_all_it_depends_on(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", fake_compiler(cache, WRITES))
    said: list[str] = []
    library = build.ensure_built(said.append)
    assert library.read_text(encoding="utf-8") == "built\n"
    assert build.ensure_built(said.append) == library
    assert len(said) == 1
    assert "9.9.9" in said[0]
    assert "tensorflow-cpu-9.9.9-" in library.parent.name
    assert sys.implementation.cache_tag.replace("cpython-", "") in library.parent.name
    other = build.library_path(build.TensorFlow("tensorflow-cpu", "9.9.8", Path("/nowhere")))
    assert other != library
    assert [path.name for path in library.parent.iterdir()] == [library.name]


def test_changed_sources_are_another_build(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = build.library_path(TENSORFLOW)
    changed = tmp_path / "plugin"
    changed.mkdir()
    (changed / "clock.cc").write_text("// other", encoding="utf-8")
    monkeypatch.setattr(build, "SOURCES", changed)
    assert build.library_path(TENSORFLOW) != before


def test_two_at_once_build_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = fake_compiler(cache, WRITES)
    monkeypatch.setenv("CXX", compiler)
    results: list[Path] = []
    threads = [
        threading.Thread(target=lambda: results.append(build.ensure_built(lambda _: None))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 4
    # Two units and one link, by one of the four.
    assert len(Path(f"{compiler}.log").read_text(encoding="utf-8").splitlines()) == 3


def test_no_compiler_is_one_line_that_says_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(build.BuildError, match=r"apt install g\+\+") as caught:
        build.ensure_built()
    assert "\n" not in str(caught.value)


def test_an_old_tensorflow_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = build.TensorFlow("tensorflow-cpu", "2.18.1", cache)
    monkeypatch.setattr(build, "installed_tensorflow", lambda: old)
    with pytest.raises(build.BuildError, match=r"needs TensorFlow 2\.19 or later, and 2\.18\.1 is installed"):
        build.ensure_built()


def test_a_failing_compiler_shows_its_first_error_and_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", fake_compiler(cache, "echo 'x.cc:1: error: no such header'; exit 1"))
    with pytest.raises(build.BuildError, match="no such header") as caught:
        build.ensure_built(lambda _: None)
    assert "\n" not in str(caught.value)
    assert [path.name for path in build.cache_directory().iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 * 1024**3), ("512 MiB", 512 * 1024**2), ("16GB", 16 * 10**9), (2**30, 2**30)],
)
def test_memory_sizes(text: str | int, size: int) -> None:
    assert activation.parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "lots", "8 gigs", "-1GiB", "1MiB", 0])
def test_wrong_memory_sizes_are_refused(text: str | int) -> None:
    with pytest.raises(UsageError, match="device memory"):
        activation.parse_memory(text)


def test_profiles_by_name_by_mapping_and_from_a_base() -> None:
    assert set(PROFILES) == {"t4", "v100", "a100", "h100"}
    slow = resolve({"name": "slow-bus", "base": "a100", "bus_bandwidth": 4e9})
    assert slow.bus_bandwidth == 4e9
    assert slow.float16_flops == PROFILES["a100"].float16_flops
    assert resolve(PROFILES["t4"]) is PROFILES["t4"]


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("rtx", "choose one of a100, h100, t4, v100"),
        ({"name": "x"}, "lacks"),
        ({"base": "a100", "speed": 3}, "no such field 'speed'"),
        ({"base": "a100", "bus_bandwidth": "fast"}, "must be a number"),
        ({"base": "a100", "bus_bandwidth": 0}, "more than 0"),
    ],
)
def test_wrong_profiles_are_refused(profile: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(profile)  # type: ignore[arg-type]


def test_the_environment_carries_the_settings() -> None:
    text = activation.environment_for(2, "1GiB", {"base": "t4", "name": "mine", "copy_us": 5})[
        activation.ENVIRONMENT
    ]
    assert '"count": 2' in text
    assert '"copy_us": 5' in text


def test_a_wrong_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(activation.ENVIRONMENT, "yes")
    with pytest.raises(UsageError, match=activation.ENVIRONMENT):
        activation.enable_from_environment()
    monkeypatch.delenv(activation.ENVIRONMENT)
    assert activation.enable_from_environment() is False


@pytest.mark.parametrize(("count", "clock"), [(0, "real"), (65, "real"), (1, "sundial")])
def test_wrong_settings_are_refused(count: int, clock: str) -> None:
    with pytest.raises(StokerError):
        activation.settings_of(count, "1GiB", "a100", clock)
