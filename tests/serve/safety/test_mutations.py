"""Bundles changed at random: refused in one line before anything is loaded, or they answer as before."""

from __future__ import annotations

import random
from pathlib import Path

import keras
import pytest

from stoker.cli import main
from stoker.serve.bundle import BundleError, hashes, read
from stoker.serve.proof import read_recordings
from stoker.serve.safety.opening import open_bundle
from tests.serve.forging import reseal
from tests.serve.safety.mutations import copy_of, describe_otherwise, mutate


def refusal(place: Path) -> str:
    """Why a bundle is not opened; "" if it is."""
    try:
        read_recordings(open_bundle(place))
    except BundleError as error:
        return str(error)
    return ""


def test_no_changed_bundle_is_opened(pets: tuple[keras.Model, Path], tmp_path: Path) -> None:
    chance = random.Random(11)
    known = hashes(pets[1])
    for number in range(150):
        place = copy_of(pets[1], tmp_path / "copy")
        what = mutate(place, chance, forge=False)
        line = refusal(place)
        assert "\n" not in line
        if not line:
            # A cut of nothing, or a value that is what it was.
            assert (hashes(place), read(place).description) == (known, read(pets[1]).description), (
                number,
                what,
            )


def test_a_forged_bundle_ends_in_one_line_at_most(pets: tuple[keras.Model, Path], tmp_path: Path) -> None:
    chance = random.Random(12)
    lines = []
    for _ in range(150):
        place = copy_of(pets[1], tmp_path / "copy")
        mutate(place, chance, forge=True)
        lines.append(refusal(place))
    assert not [line for line in lines if "\n" in line]
    assert len([line for line in lines if line]) > 30


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, '{"schema": 1, "labels": ' + "[" * 100_000]
)
def test_a_deeply_nested_description_is_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bundle.json").write_text(text)
    assert main(["bundle", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "nested too deeply" in said or "cannot be read" in said
    assert said.count("\n") == 1


def test_odd_descriptions_are_shown_or_refused_in_one_line(
    pets: tuple[keras.Model, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(13)
    for _ in range(150):
        place = copy_of(pets[1], tmp_path / "copy")
        describe_otherwise(place, chance)
        try:
            reseal(place)
        except (TypeError, ValueError, AttributeError):
            continue
        code = main(["bundle", str(place)])
        said = capsys.readouterr().err
        assert (code, said.count("\n")) in ((0, 0), (2, 1)), said
