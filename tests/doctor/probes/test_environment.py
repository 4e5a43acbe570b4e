"""The machine and what else it does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stoker.doctor.probes.environment import OtherWork, environment, workers_in_job
from tests.support import wait_until


def test_variables_that_matter_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2" + "x" * 1000)
    monkeypatch.setenv("MY_SECRET", "1")
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["10.0.0.1:1"]}}')
    monkeypatch.setenv("NVIDIA_API_KEY", "nvapi-1")
    facts = environment()
    assert str(facts["TF_XLA_FLAGS"]).startswith("--tf_xla_auto_jit=2")
    assert len(str(facts["TF_XLA_FLAGS"])) == 200
    assert not {"MY_SECRET", "TF_CONFIG", "NVIDIA_API_KEY"} & set(facts)
    assert int(facts["cores"]) >= 1
    assert int(facts["memory"]) > 1_000_000


def test_what_others_do_is_seen_and_what_we_do_is_not() -> None:
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        work = OtherWork()
        assert work.share() is None
        # One process on all processors of the machine; what else runs there adds to it.
        wait_until(lambda: (work.share() or 0.0) >= 0.5 / int(environment()["cores"]))
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ('{"cluster": {"worker": ["a:1", "b:1"]}, "task": {}}', 2),
        ('{"cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]}}', 3),
        ("", 1),
        ("{", 1),
        ("[]", 1),
        ('{"cluster": []}', 1),
    ],
)
def test_the_size_of_a_job(monkeypatch: pytest.MonkeyPatch, text: str, workers: int) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    assert workers_in_job() == workers
