"""Secrets in text: passwords, tokens and keys are replaced before anything is stored or shown.

A secret is recognised by the name under which it is given (`--token X`, `api_key=X`, `{"password": X}`), by its place
in a URL (`postgresql://user:X@host`), by its form (`ghp_...`, `sk-...`, a JWT), or because an environment variable with
the name of a secret has that value. A password that is passed under an ordinary name, and is in no such variable, looks
like any other word and cannot be recognised.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

MASK = "***"

# A name is secret if it ends in one of these words: `token_file` and `max_tokens` are not.
_SECRET_WORDS = frozenset(
    [
        "token",
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "pass",
        "pwd",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "apikey",
        "bearer",
        "authorization",
        "cookie",
    ]
)
# ... or in "key" after one of these.
_KEY_WORDS = frozenset(
    [
        "api",
        "access",
        "secret",
        "private",
        "signing",
        "encryption",
        "account",
        "master",
        "auth",
        "ssh",
        "license",
        "storage",
        "service",
        "shared",
    ]
)
# Names that text models use for tokens: `pad_token` is a word of a vocabulary.
_VOCABULARY = frozenset(
    [
        "pad",
        "mask",
        "eos",
        "bos",
        "unk",
        "oov",
        "sep",
        "cls",
        "start",
        "end",
        "begin",
        "stop",
        "next",
        "last",
        "special",
    ]
)
# Environment variables may also have the word in the middle, as AWS_SECRET_ACCESS_KEY and PGPASSWORD do.
_SECRET_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE
)
# Shorter values are words that occur by chance.
_SHORTEST_VALUE = 8

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Each of these patterns is linear: no part can match what its neighbour matches, and every repetition has a limit.
_URL = re.compile(r"\b([a-zA-Z][a-zA-Z0-9+.-]{0,40}://)([^\s/?#'\"]{1,512})@")
_NAME = r"[A-Za-z][\w.-]{0,60}?"
_OPTION = re.compile(rf"(?<![\w-])(--?{_NAME})(?:=| )")
# An assignment in a shell, a query, JSON, YAML or Python. Python's `token = next(words)` is not one: with spaces around
# the sign, the value must be quoted.
_ASSIGNMENT = re.compile(rf"(?<![\w.-])({_NAME})(?:[\"']?(?:=|: ?)| = (?=[\"']))")
_VALUE = re.compile(r"\"[^\"\n]{1,4096}\"|'[^'\n]{1,4096}'|[^\s\"'&,;)\]}]{1,4096}")
_KNOWN_FORMS = re.compile(
    r"\b(?:gh[pousr]_\w{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,64}|hf_[A-Za-z0-9]{20,64}|"
    r"sk-[\w-]{20,200}|xox[abprs]-[\w-]{10,200}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}|"
    r"eyJ[\w-]{8,4096}\.[\w-]{8,4096}\.[\w-]{8,4096})"
)
_SHORTEST_FORM = 15
_BEARER = re.compile(r"\b(Bearer|Basic) ([A-Za-z0-9._~+/=-]{8,4096})", re.IGNORECASE)
_SCHEMES_WITH_TOKENS = ("http://", "https://")


def is_secret_name(name: str) -> bool:
    """Return whether a value given under this name is a secret: `--api-key`, `githubToken`, `DB_PASSWORD`."""
    words = [word.lower() for word in _WORD.findall(name[-100:])]
    if not words:
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "key":
        return before in _KEY_WORDS
    return words[-1] in _SECRET_WORDS and before not in _VOCABULARY


def redact_text(text: str) -> str:
    """Return a text without the secrets in it."""
    return _redact_text(text, _environment_secrets())


def redact_arguments(words: Sequence[str]) -> list[str]:
    """Return a program's arguments without the secrets among them. A value may be in the same word or in the next."""
    known = _environment_secrets()
    redacted: list[str] = []
    is_value = False
    for word in words:
        text = str(word)
        if is_value and not text.startswith("--"):
            redacted.append(MASK)
            is_value = False
            continue
        name, given, _ = text.partition("=")
        is_value = text.startswith("-") and not given and is_secret_name(text)
        if given and is_secret_name(name):
            redacted.append(f"{name}={MASK}")
        else:
            redacted.append(_redact_text(text, known))
    return redacted


def redact(value: Any) -> Any:
    """Return plain values (dicts, lists, text, numbers) without secrets, in text or under a secret name."""
    return _redact_value(value, _environment_secrets())


def _redact_value(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        return _redact_text(value, known)
    if isinstance(value, Mapping):
        return {name: _redact_named(name, inner, known) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_value(inner, known) for inner in value]
    return value


def _redact_named(name: Any, value: Any, known: list[str]) -> Any:
    if value and isinstance(name, str) and isinstance(value, str | bytes) and is_secret_name(name):
        return MASK
    return _redact_value(value, known)


def _redact_text(text: str, known: list[str]) -> str:
    for value in known:
        text = text.replace(value, MASK)
    # Most text is a word or two, so each pattern is tried only on text that could match it.
    if "://" in text:
        text = _URL.sub(_redact_url, text)
    if len(text) >= _SHORTEST_FORM:
        text = _KNOWN_FORMS.sub(MASK, text)
    if " " in text:
        text = _BEARER.sub(rf"\1 {MASK}", text)
    if "-" in text:
        text = _redact_values(text, _OPTION)
    if "=" in text or ":" in text:
        text = _redact_values(text, _ASSIGNMENT)
    return text


def _redact_url(match: re.Match[str]) -> str:
    scheme, who = match[1], match[2]
    user, colon, _ = who.partition(":")
    if colon:
        return f"{scheme}{user}:{MASK}@"
    # `https://TOKEN@github.com`, whereas `ssh://git@...` and `postgresql://me@...` only name a user.
    return f"{scheme}{MASK}@" if scheme.lower() in _SCHEMES_WITH_TOKENS else match[0]


def _redact_values(text: str, named: re.Pattern[str]) -> str:
    """Replace values that are given under a secret name."""
    parts: list[str] = []
    done = 0
    for match in named.finditer(text):
        value = (
            _VALUE.match(text, match.end()) if match.start() >= done and is_secret_name(match[1]) else None
        )
        if value is not None:
            quote = value[0][0] if value[0][0] in "\"'" else ""
            parts += [text[done : match.end()], quote, MASK, quote]
            done = value.end()
    return "".join((*parts, text[done:]))


def _environment_secrets() -> list[str]:
    """Return the values of environment variables that are secrets by their names, longest first."""
    values = [os.environ.get(name, "") for name in os.environ if _SECRET_VARIABLE.search(name)]
    # A key of several lines is handled line by line, so that a text keeps its lines.
    lines = (line for value in values if not _names_file(value) for line in value.splitlines())
    found = {line for line in lines if len(line) >= _SHORTEST_VALUE}
    return sorted(found, key=len, reverse=True)


def _names_file(value: str) -> bool:
    """Return whether a value is just the path of a secret's file, as in GOOGLE_APPLICATION_CREDENTIALS."""
    return value.startswith(("/", "./", "~"))
