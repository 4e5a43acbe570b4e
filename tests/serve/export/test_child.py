"""The process that proves a bundle, started before there is one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.serve.bundle import BundleError
from stoker.serve.export import child
from tests.support import wait_until


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    child.dismiss_prepared()


def test_the_one_that_was_prepared_proves_the_next_bundle(tmp_path: Path) -> None:
    child.prepare()
    (prepared,) = child._prepared
    with child.next_prover() as prover:
        assert prover is prepared
        prover.load(keras=tmp_path / "model.keras", saved_model=tmp_path / "saved_model")
        with pytest.raises(BundleError, match="bundle"):
            prover.prove(tmp_path)
    assert not prover.is_alive
    with child.next_prover() as another:
        assert another is not prepared


def test_one_that_is_gone_is_not_waited_for() -> None:
    child.prepare()
    (prepared,) = child._prepared
    os.kill(prepared._process.pid, signal.SIGKILL)
    wait_until(lambda: not prepared.is_alive)
    with child.next_prover() as prover:
        assert prover is not prepared
        assert prover.is_alive


def test_one_that_is_not_needed_goes() -> None:
    child.prepare()
    (prepared,) = child._prepared
    child.dismiss_prepared()
    assert not prepared.is_alive
    assert not child._prepared
