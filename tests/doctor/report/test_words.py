"""Notes of a run, the same on the terminal and on the page."""

from __future__ import annotations

from stoker.doctor.report.page import data
from stoker.doctor.report.words import list_notes
from tests.samples import sample_finding, sample_record

BUSY = {"busy with other work": 0.72}


def test_a_busy_machine_is_a_note_of_the_report_and_of_the_page() -> None:
    record = sample_record(environment=BUSY, notes=["from the run"])
    note = "other programs used 72 % of the processors: times and prices are less certain than their bounds"
    assert list_notes(record) == ["from the run", note]
    assert data.run_data(record)["notes"] == ["from the run", note]


def test_the_note_on_a_busy_machine_says_only_what_holds() -> None:
    unpriced = sample_record(environment=BUSY, findings=[sample_finding(what_if=None)])
    assert list_notes(unpriced) == ["other programs used 72 % of the processors: times are less certain"]
    # The other workers of a job count as other programs.
    (note,) = list_notes(sample_record(environment=BUSY | {"workers": 2}))
    assert note.startswith("other programs and other workers used 72 %")
    assert list_notes(sample_record(environment={"busy with other work": 0.09})) == []
    assert list_notes(sample_record()) == []
