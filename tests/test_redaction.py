"""Secrets in text are replaced, whatever they are given as; ordinary words are left alone."""

from __future__ import annotations

import pytest

from stoker.redaction import redact, redact_arguments, redact_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://me:hunter2@host/runs", "postgresql://me:***@host/runs"),
        ("redis://:hunter2@host", "redis://:***@host"),
        ("mysql://me:hunt@er2@host/x", "mysql://me:***@host/x"),
        ("fatal: unable to access 'https://x:hunter2@host/r.git/'", "fatal: unable to access 'https://x:***@host/r.git/'"),
        ("https://hunter2@github.com/a/b", "https://***@github.com/a/b"),
        ("https://host/x?token=hunter2&page=2", "https://host/x?token=***&page=2"),
        ("failed: train.py --password hunter2 --epochs 3", "failed: train.py --password *** --epochs 3"),
        ('login with --password "hunter 2"', 'login with --password "***"'),
        ("host=h password=hunter2 user=me", "host=h password=*** user=me"),
        ("{'api_key': 'hunter2', 'rate': 1}", "{'api_key': '***', 'rate': 1}"),
        ('+API_KEY = "hunter2"', '+API_KEY = "***"'),
        ("githubToken: hunter2", "githubToken: ***"),
        ("sent Bearer abcdefgh.hunter2", "sent Bearer ***"),
        ("used ghp_0123456789abcdefghij0123", "used ***"),
        ("used AKIA0123456789ABCDEF", "used ***"),
    ],
)  # fmt: skip
def test_secrets_are_replaced(text: str, expected: str) -> None:
    assert redact_text(text) == expected


# The letters of a token that nobody was ever given. The parts meet only here, so that no scanner takes them for real.
FAKE = "NotARealToken" * 4


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("gh" + "o_" + FAKE[:36], id="GitHub, of an app"),
        pytest.param("github" + "_pat_" + FAKE[:22] + "_" + FAKE[:59], id="GitHub, fine-grained"),
        pytest.param("gl" + "pat-" + FAKE[:20], id="GitLab"),
        pytest.param("h" + "f_" + FAKE[:34], id="Hugging Face"),
        pytest.param("s" + "k-" + FAKE[:48], id="OpenAI"),
        pytest.param("s" + "k-proj-" + FAKE[:20] + "_" + FAKE[:20], id="OpenAI, of a project"),
        pytest.param("xo" + "xb-" + "0" * 12 + "-" + "0" * 12 + "-" + FAKE[:24], id="Slack, of a bot"),
        pytest.param("xo" + "xp-" + "0" * 12 + "-" + FAKE[:32], id="Slack, of a user"),
        pytest.param("AS" + "IA" + "0123456789ABCDEF", id="AWS, for a session"),
        pytest.param("AI" + "za" + FAKE[:35], id="Google"),
        pytest.param("ey" + "J" + FAKE[:20] + ".ey" + "J" + FAKE[:20] + "." + FAKE[:43], id="JWT"),
    ],
)
@pytest.mark.parametrize("text", ["{}", "used {}, and failed", "[{}]", "'x': '{}'", "train.py --as={} 3"])
def test_tokens_are_replaced_by_their_form(token: str, text: str) -> None:
    assert redact_text(text.format(token)) == text.format("***")


@pytest.mark.parametrize(
    "text",
    [
        "ssh://git@host/x", "postgresql://me@host/runs", "sqlite:////srv/runs.db", "max_tokens=5", "token_file=/run/x",
        "pad_token=[PAD]", "the token was refused", "step 5: loss: 3", "key=5", "token = next(words)", "a@b.example",
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact_text(text) == text


def test_arguments_are_redacted_in_their_word_or_the_next() -> None:
    words = [
        "--token",
        "a",
        "--password=b",
        "--api-key",
        "c",
        "--secret",
        "--lr",
        "0.1",
        "DB_PASSWORD=d",
        "--url=x://u:e@h",
    ]
    assert redact_arguments(words) == [
        "--token", "***", "--password=***", "--api-key", "***", "--secret", "--lr", "0.1", "DB_PASSWORD=***", "--url=x://u:***@h",
    ]  # fmt: skip


def test_values_of_secret_variables_are_replaced_wherever_they_turn_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "plain-looking-words")
    monkeypatch.setenv("APP_CREDENTIALS", "/etc/app/key.json")
    assert redact_arguments(["--auth", "plain-looking-words"]) == ["--auth", "***"]
    assert redact_text("/etc/app/key.json is missing") == "/etc/app/key.json is missing"


def test_nested_values_are_redacted_by_their_names() -> None:
    given = {"db": {"password": "a", "port": 5}, "hosts": ["x://u:b@h"], "token": 7, "rate": 0.1}
    assert redact(given) == {
        "db": {"password": "***", "port": 5},
        "hosts": ["x://u:***@h"],
        "token": 7,
        "rate": 0.1,
    }


@pytest.mark.parametrize("part", ["a", " ", "a.", "a=", "-", "a://", "'\"", "--a ", "eyJa.", "a:b@"])
def test_long_text_is_read_once(part: str) -> None:
    """With a pattern that goes back and forth, a megabyte of one of these would take days."""
    redact_text(part * (1_000_000 // len(part)))
