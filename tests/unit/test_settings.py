"""Where settings come from: the environment before ``.env``, names of other systems, keys of any provider."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.settings import Settings


@pytest.fixture(autouse=True)
def a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and nothing of this machine's environment that could be a setting."""
    for name in list(os.environ):
        if name.startswith("SEATRIAL_") or name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_env_file_may_hold_the_key_of_any_provider(a_place_of_its_own: Path) -> None:
    (a_place_of_its_own / ".env").write_text(
        "ANTHROPIC_API_KEY=sk-ant-in-the-file\n"
        "OPENROUTER_API_KEY='sk-or-in-the-file'  # a comment\n"
        "HF_TOKEN=hf-in-the-file\n"
        "OPENAI_API_KEY=\n"
        "SEATRIAL_CONCURRENCY=7\n"
        "DEBUG=false\n"
    )
    settings = Settings()
    assert settings.provider_keys == {
        "ANTHROPIC_API_KEY": "sk-ant-in-the-file",
        "OPENROUTER_API_KEY": "sk-or-in-the-file",
        "HF_TOKEN": "hf-in-the-file",
    }
    assert (settings.concurrency, settings.openrouter_api_key) == (7, "sk-or-in-the-file")
    assert "in-the-file" not in repr(settings) + str(settings.model_dump(exclude={"openrouter_api_key"}))


def test_the_environment_comes_before_the_env_file(a_place_of_its_own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (a_place_of_its_own / ".env").write_text("ANTHROPIC_API_KEY=in-the-file\nMISTRAL_API_KEY=in-the-file\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "in-the-environment")
    found = Settings().provider_environment
    assert found == {"ANTHROPIC_API_KEY": "in-the-environment", "MISTRAL_API_KEY": "in-the-file"}


def test_without_the_env_file_nothing_of_it_is_known(a_place_of_its_own: Path) -> None:
    (a_place_of_its_own / ".env").write_text("ANTHROPIC_API_KEY=in-the-file\nSEATRIAL_CONCURRENCY=7\n")
    settings = Settings(_env_file=None)
    assert (settings.provider_environment, settings.concurrency) == ({}, 0)


def test_a_changed_copy_keeps_the_keys(a_place_of_its_own: Path) -> None:
    """``--server`` makes one."""
    (a_place_of_its_own / ".env").write_text("ANTHROPIC_API_KEY=in-the-file\n")
    copy = Settings().model_copy(update={"server": "http://127.0.0.1:8000"})
    assert copy.provider_environment == {"ANTHROPIC_API_KEY": "in-the-file"}


def test_the_env_file_of_tbench_runner_is_understood(a_place_of_its_own: Path) -> None:
    """Names of the contract; those that have no meaning here do no harm."""
    (a_place_of_its_own / ".env").write_text(
        "DATABASE_URL=postgresql://tbench:secret@db:5432/tbench_runner\n"
        "REDIS_URL=redis://localhost:6379/0\n"
        "CELERY_BROKER_URL=redis://localhost:6379/0\n"
        "CELERY_RESULT_BACKEND=redis://localhost:6379/0\n"
        "STORAGE_BACKEND=s3  # local or s3\n"
        "AWS_REGION=us-east-1\n"
        "S3_BUCKET_NAME=runs\n"
        "OPENROUTER_API_KEY=sk-or-theirs\n"
        "CORS_ORIGINS=http://localhost:3000\n"
        "ENVIRONMENT=development  # development, staging, production\n"
    )
    settings = Settings()
    assert settings.store_url == "postgresql+asyncpg://tbench:secret@db:5432/tbench_runner"
    assert settings.files_url == "s3://runs"
    assert (settings.openrouter_api_key, settings.cors_origins) == ("sk-or-theirs", "http://localhost:3000")
    assert settings.broker_url == "redis://localhost:6379/0"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("SEATRIAL_BROKER_URL", "CELERY_BROKER_URL", "REDIS_URL"), "SEATRIAL_BROKER_URL"),
        (("CELERY_BROKER_URL", "REDIS_URL"), "CELERY_BROKER_URL"),
        (("REDIS_URL",), "REDIS_URL"),
        ((), ""),
    ],
)
def test_the_broker_has_three_names(
    given: tuple[str, ...], expected: str, a_place_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CELERY_BROKER_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in given:
        monkeypatch.setenv(name, f"redis://:canary-password@{name}:6379/0")
    settings = Settings()
    assert (expected in settings.broker_url) and bool(settings.broker_url) == bool(expected)
    assert "canary-password" not in repr(settings)


def test_the_names_of_aws_are_understood_and_the_secrets_not_shown(
    a_place_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (a_place_of_its_own / ".env").write_text(
        "SEATRIAL_BLOBS_URL=s3://runs/results\n"
        "AWS_DEFAULT_REGION=eu-central-1\n"
        "AWS_ENDPOINT_URL=https://s3.example.org\n"
        "AWS_ACCESS_KEY_ID=AKIAFILE\n"
        "AWS_SECRET_ACCESS_KEY=secret-in-the-file\n"
        "AWS_SESSION_TOKEN=token-in-the-file\n"
    )
    settings = Settings()
    assert (settings.s3_region, settings.s3_endpoint) == ("eu-central-1", "https://s3.example.org")
    assert (settings.s3_access_key_id, settings.s3_secret_access_key) == ("AKIAFILE", "secret-in-the-file")
    assert settings.s3_session_token == "token-in-the-file"
    assert "in-the-file" not in repr(settings), "neither is printed"
    assert settings.provider_environment == {}, "no agent gets them"
    monkeypatch.setenv("SEATRIAL_S3_REGION", "us-west-2")
    assert Settings().s3_region == "us-west-2"
