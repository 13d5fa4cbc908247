"""The broker's address: Redis only, verified TLS, and no password where people read."""

from __future__ import annotations

import pytest
from kombu import Connection

from seatrial.adapters.wake_up_celery.address import checked, shown
from seatrial.adapters.wake_up_celery.app import celery_app
from seatrial.errors import SetupProblem

SECRET = "canary-password"


@pytest.mark.parametrize("url", ["redis://h", "redis://h:6379/0", f"redis://user:{SECRET}@h:6379/1", "rediss://h/0"])
def test_addresses_of_redis_are_taken(url: str) -> None:
    assert checked(url).startswith(url)


@pytest.mark.parametrize(
    "url",
    ["", "h:6379", f"amqp://u:{SECRET}@h//", f"redis://:{SECRET}@", f"http://{SECRET}@h", f"redis://:{SECRET}@h:x"],
)
def test_others_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(SetupProblem) as refused:
        checked(url)
    assert SECRET not in str(refused.value) and "SEATRIAL_BROKER_URL" in str(refused.value)


def test_the_address_is_shown_without_account_and_options() -> None:
    assert shown(f"rediss://user:{SECRET}@h:6379/0?ssl_ca_certs=/x") == "rediss://h:6379/0"


def test_tls_verifies_unless_the_address_says_otherwise() -> None:
    by_default = Connection(checked("rediss://h:6379/0")).ssl
    assert (by_default["ssl_cert_reqs"], by_default["ssl_check_hostname"]) == (2, True)
    chosen = Connection(checked("rediss://h:6379/0?ssl_cert_reqs=none&ssl_check_hostname=false")).ssl
    assert (chosen["ssl_cert_reqs"], chosen["ssl_check_hostname"]) == (0, False)


def test_the_environment_of_celery_does_not_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """Celery itself lets these variables win over the app."""
    for name in ("BROKER_URL", "BROKER_READ_URL", "BROKER_WRITE_URL", "RESULT_BACKEND"):
        monkeypatch.setenv(f"CELERY_{name}", "redis://elsewhere:1/7")
    app = celery_app("redis://here:6379/0")
    assert app.connection_for_read().hostname == app.connection_for_write().hostname == "here"
    assert type(app.backend).__name__ == "DisabledBackend"


def test_messages_are_json_and_hints_name_no_arguments() -> None:
    app = celery_app("redis://here:6379/0")
    assert app.conf.accept_content == ["json"] and app.conf.task_serializer == "json"
    assert not app.conf.task_acks_late and app.conf.worker_prefetch_multiplier == 1
