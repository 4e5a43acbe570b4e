"""Records on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.errors import RecordError, UsageError
from stoker.tracking.store import record_files
from tests.samples import sample_record


def test_a_record_survives_the_disk(tmp_path: Path) -> None:
    record = sample_record()
    record_files.write(record, tmp_path / "a.json")
    assert record_files.read(tmp_path / "a.json") == record
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    "content", ["", "{", "[1]", '{"schema": 99}', '{"schema": 1, "id": "x"}', "\x00", "[" * 100_000]
)
def test_a_damaged_record_is_one_clear_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(RecordError) as caught:
        record_files.read(path)
    assert "bad.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["{}", "[1]", '{"schema": "http://json-schema.org"}'])
def test_a_file_that_is_no_record_is_not_called_new(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"x\.json is not a record of Stoker: `stoker runs` lists"):
        record_files.read(path)
    path.write_text('{"schema": 99}')
    with pytest.raises(RecordError, match="has schema 99, this Stoker reads 1: update Stoker"):
        record_files.read(path)


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    data = sample_record().to_json() | {"invented_later": 1}
    path = tmp_path / "new.json"
    path.write_text(json.dumps(data))
    assert record_files.read(path) == sample_record()


def test_runs_are_found_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    for name in ("20260101-000000-aaaa", "20260101-000001-bbbb"):
        record_files.write(sample_record(), tmp_path / f"{name}.json")
    assert record_files.resolve(None, tmp_path).stem == "20260101-000001-bbbb"
    assert record_files.resolve("latest", tmp_path).stem == "20260101-000001-bbbb"
    assert record_files.resolve("20260101-000000", tmp_path).stem == "20260101-000000-aaaa"
    with pytest.raises(RecordError, match="2 runs whose ids begin with '2026'"):
        record_files.resolve("2026", tmp_path)
    with pytest.raises(RecordError, match="no run with id 'zz'"):
        record_files.resolve("zz", tmp_path)


def test_no_runs_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="stoker run"):
        record_files.resolve(None, tmp_path)


def test_an_unwritable_place_is_told_before_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write to"):
        record_files.prepare(tmp_path / "file" / "runs")


def test_ids_sort_by_time_and_differ() -> None:
    made = {record_files.new_id() for _ in range(50)}
    assert len(made) > 45


def test_a_job_is_found_by_its_id_though_its_workers_begin_with_it(tmp_path: Path) -> None:
    for name in ("20261116-1-0", "20261116-1-1", "20261116-1-job"):
        record_files.write(sample_record(id=name), tmp_path / f"{name}.json")
    assert record_files.resolve("20261116-1", tmp_path).stem == "20261116-1-job"
    assert record_files.resolve("20261116-1-1", tmp_path).stem == "20261116-1-1"
    assert record_files.resolve(None, tmp_path).stem == "20261116-1-job"
