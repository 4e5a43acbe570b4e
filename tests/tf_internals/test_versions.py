"""Which versions are supported, and what users of others are told."""

from __future__ import annotations

import re

import pytest

from stoker.tf_internals.versions import KERAS, TENSORFLOW, SupportedVersions, parse, spell
from tests.support import ROOT


@pytest.mark.parametrize("version", ["3.12.1", "3.12.4", "3.13.0", "3.15.1", "3.15"])
def test_keras_that_was_tried_is_supported(version: str) -> None:
    assert KERAS.includes(version)


@pytest.mark.parametrize("version", ["2.15.0", "3.12.0", "3.16.0", "4.0.0", "unknown", ""])
def test_keras_that_was_never_tried_is_not(version: str) -> None:
    assert not KERAS.includes(version)


def test_tensorflow_is_bounded_by_its_minor_version() -> None:
    assert [v for v in ("2.16.2", "2.17.0", "2.21.0", "2.21.9rc1", "2.22.0") if TENSORFLOW.includes(v)] == [
        "2.17.0",
        "2.21.0",
        "2.21.9rc1",
    ]


def test_the_refusal_is_one_line_that_names_the_way_out() -> None:
    assert KERAS.refusal("3.16.0") == (
        "Keras 3.16.0 is not supported: Stoker runs on 3.12.1 to 3.15. Install one of those."
    )


@pytest.mark.parametrize("known", [TENSORFLOW, KERAS], ids=lambda known: known.library)
def test_the_package_asks_for_the_same_versions(known: SupportedVersions) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = re.findall(rf'"{known.library.lower()}[^">]*>=([\d.]+),<([\d.]+)"', text)
    after = (*known.newest[:-1], known.newest[-1] + 1)
    assert set(bounds) == {(spell(known.oldest), spell(after))}


def test_versions_are_read_and_written() -> None:
    assert parse("3.12.1.dev4") == (3, 12, 1)
    assert spell((3, 12, 1)) == "3.12.1"
