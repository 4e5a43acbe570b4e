"""The encodings of text files: that of a byte order mark, or the one that the caller gives."""

from __future__ import annotations

import codecs

from stoker.errors import ArgumentError

# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ALL_MARKS = tuple(mark for mark, _ in _MARKS)
LONGEST_MARK = max(map(len, _ALL_MARKS))


def check_encoding(encoding: str) -> str:
    """Return the encoding.

    Raises:
        ArgumentError: Python does not know it.
    """
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ArgumentError(
            f"encoding={encoding!r} is not known: give one such as encoding='utf8' or 'latin-1'"
        ) from None
    return encoding


def encoding_of(beginning: bytes, encoding: str) -> str:
    """Return the encoding of a file that begins like this: that of its byte order mark, or else the given one."""
    if beginning.startswith(_ALL_MARKS):
        return next(name for mark, name in _MARKS if beginning.startswith(mark))
    return encoding


def decode(raw: bytes, encoding: str) -> str | None:
    """Return the text of a file, or None if it is not text in that encoding."""
    try:
        text = raw.decode(encoding_of(raw, encoding))
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def show_encoding(encoding: str) -> str:
    """Return the name of an encoding for a message: `UTF-8` for all its spellings."""
    name = codecs.lookup(encoding).name.removesuffix("-sig")
    return name.upper() if name.startswith("utf") else encoding


def suggest_others(encoding: str) -> str:
    """Return the argument with two encodings to try when text is not in this one."""
    given = codecs.lookup(encoding).name.removesuffix("-sig")
    first, second = [one for one in ("utf8", "latin-1", "utf-16") if codecs.lookup(one).name != given][:2]
    return f"encoding={first!r} or {second!r}"


def refuse_encoding(path: object, encoding: str, others: str = "") -> ArgumentError:
    """Return the error for a file that is not text in the encoding. `others` tells of the files beside it."""
    return ArgumentError(
        f"{path} is not {show_encoding(encoding)} text{others}: if it is text, give its encoding, such as "
        f"{suggest_others(encoding)}"
    )
