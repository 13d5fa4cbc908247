"""Secrets do not get into a log, however they got into a record; everything else stays readable."""

from __future__ import annotations

import io
import logging

import pytest

from seatrial.domain.token import fresh_secret
from seatrial.redact import BLOT, RedactingFilter, Redactor, teach_settings
from seatrial.settings import Settings

KEY = "key/with+odd.characters=="


@pytest.mark.parametrize(
    "text",
    [
        "token st_" + "Ab3-" * 10 + "Zq9 given",
        "GET /api/tasks?openrouter_api_key=abcd1234 HTTP/1.1",
        "{'api_key': 'abcd1234'}",
        '{"api_key": "abcd1234"}',
        "x-provider-key: OPENAI_API_KEY=abcd1234",
        "Authorization: Bearer abcd1234abcd1234abcd",
        "authorization: basic abcd1234abcd1234abcd==",
        "sk-or-v1-abcd1234abcd1234",
        f"learnt {KEY} before",
    ],
)
def test_what_is_or_looks_like_a_secret_is_blotted_out(text: str) -> None:
    redactor = Redactor()
    redactor.learn([KEY])
    clean = redactor.text(text)
    assert BLOT in clean and "abcd1234" not in clean and "st_" not in clean and KEY not in clean


def test_a_token_of_ours_is_blotted_out() -> None:
    assert "st_" not in Redactor().text(f"token {fresh_secret()} given")


def test_ordinary_text_stays() -> None:
    redactor = Redactor()
    redactor.learn(["", "abc"])  # too short to be a key
    for text in ("abc best_effort task-sk-3", "risk-averse", "bearer of news", "st_short", "api_key missing"):
        assert redactor.text(text) == text


def test_the_longest_known_value_goes_first_and_the_oldest_is_forgotten() -> None:
    redactor = Redactor(remembered=2)
    redactor.learn(["secret", "secret-longer"])
    assert redactor.text("secret-longer secret") == f"{BLOT} {BLOT}"
    redactor.add_permanent(["of the house"])
    redactor.learn(["another"])
    assert redactor.text("secret another of the house") == f"secret {BLOT} {BLOT}"
    redactor.learn(f"flood-{number}" for number in range(100))
    assert redactor.text("another of the house flood-99") == f"another {BLOT} {BLOT}"


def test_a_record_is_clean_in_all_of_its_parts() -> None:
    redactor = Redactor()
    redactor.learn([KEY])
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(RedactingFilter(redactor))
    handler.setFormatter(logging.Formatter("%(message)s %(about)s"))
    logger = logging.getLogger("tests.redact.child")
    logger.addHandler(handler)
    try:
        try:
            raise ValueError(f"refused {KEY}")
        except ValueError:
            logger.exception("key %s of %s", KEY, {"k": KEY}, extra={"about": {"list": [KEY], "n": 3}}, stack_info=True)
    finally:
        logger.removeHandler(handler)
    written = out.getvalue()
    assert KEY not in written
    assert "ValueError: refused [REDACTED]" in written and "'n': 3" in written and written.count(BLOT) >= 4


def test_the_installations_own_secrets_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "mistral-plain-value")
    monkeypatch.setenv("MISTRAL_API_BASE", "https://models.example")
    redactor = Redactor()
    teach_settings(redactor, Settings(secret_key="seal-secret", openrouter_api_key="router-plain"))
    text = "mistral-plain-value seal-secret router-plain https://models.example"
    assert redactor.text(text) == f"{BLOT} {BLOT} {BLOT} https://models.example"


def test_passwords_in_addresses_of_servers_are_blotted_out_as_written_and_as_sent() -> None:
    redactor = Redactor()
    teach_settings(
        redactor,
        Settings(
            _env_file=None,
            database_url="postgresql://seatrial:data%2Fbase-canary@db/seatrial",
            broker_url="rediss://:broker%40canary:more@redis:6379/0",
        ),
    )
    said = redactor.text(
        "data%2Fbase-canary data/base-canary broker%40canary:more broker@canary:more db redis seatrial"
    )
    assert said == f"{BLOT} {BLOT} {BLOT} {BLOT} db redis seatrial"
