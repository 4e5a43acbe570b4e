"""Output cut into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.launch.lines import LineSplitter


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.data())
def test_lines_are_whole_however_they_arrive(lines: list[str], data: st.DataObject) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    cut = LineSplitter()
    found: list[str] = []
    while text:
        size = data.draw(st.integers(1, len(text)))
        found += cut.add(text[:size])
        text = text[size:]
    assert found + cut.finish() == lines


def test_an_unfinished_line_is_shown_when_the_worker_ends() -> None:
    cut = LineSplitter()
    assert cut.add(b"half a ") == []
    assert cut.add(b"line") == []
    assert cut.finish() == ["half a line"]
    assert cut.finish() == []


def test_a_progress_bar_is_not_shown_at_every_turn() -> None:
    cut = LineSplitter()
    assert [line for i in range(1000) for line in cut.add(b"\r%d/1000" % i)] == []
    assert cut.add(b"\rdone\n") == ["done"]


def test_a_line_that_never_ends_does_not_grow() -> None:
    cut = LineSplitter()
    shown = [line for _ in range(100) for line in cut.add(b"x" * 4096)]
    assert sum(map(len, shown)) + len(cut.finish()[0]) == 100 * 4096
    assert len(shown) > 1


def test_bytes_that_are_not_text_are_replaced() -> None:
    assert LineSplitter().add(b"a\xffb\n") == ["a�b"]
