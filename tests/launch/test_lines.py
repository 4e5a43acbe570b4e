"""Output cut into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.launch.lines import Lines


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.data())
def test_lines_are_whole_however_they_arrive(lines: list[str], data: st.DataObject) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    cut = Lines()
    found: list[str] = []
    while text:
        size = data.draw(st.integers(1, len(text)))
        found += cut.add(text[:size])
        text = text[size:]
    assert found + cut.end() == lines


def test_what_has_no_end_is_shown_when_the_worker_ends() -> None:
    cut = Lines()
    assert cut.add(b"half a ") == []
    assert cut.add(b"line") == []
    assert cut.end() == ["half a line"]
    assert cut.end() == []


def test_a_progress_bar_is_not_shown_at_every_turn() -> None:
    cut = Lines()
    assert [line for i in range(1000) for line in cut.add(b"\r%d/1000" % i)] == []
    assert cut.add(b"\rdone\n") == ["done"]


def test_a_line_that_never_ends_does_not_grow() -> None:
    cut = Lines()
    shown = [line for _ in range(100) for line in cut.add(b"x" * 4096)]
    assert sum(map(len, shown)) + len(cut.end()[0]) == 100 * 4096
    assert len(shown) > 1


def test_bytes_that_are_no_text_are_shown_as_far_as_they_go() -> None:
    assert Lines().add(b"a\xffb\n") == ["a�b"]
