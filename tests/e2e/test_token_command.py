"""``seatrial token``: the secret is printed once, works at the service, and is refused once it is revoked."""

from __future__ import annotations

import httpx

from tests.command_line import CommandLine
from tests.running_service import service_up
from tests.waiting import LIMIT_SEC


def test_a_token_opens_the_service_until_it_is_revoked(cli: CommandLine) -> None:
    made = cli.json("token", "create", "ada", "--role", "viewer", "--expires", "30d")
    secret = cli("token", "create", "bob").out.strip()
    assert made["secret"].startswith("st_") and secret.startswith("st_") and "\n" not in secret
    with service_up(cli, "--workers", "0", SEATRIAL_AUTH="token") as service, service.client() as client:
        assert client.get("/api/v1/jobs").status_code == 401
        assert client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {made['secret']}"}).status_code == 200
        in_url = httpx.URL(service.url).copy_with(username=secret)
        assert httpx.get(f"{in_url}/api/v1/jobs", trust_env=False, timeout=LIMIT_SEC).status_code == 200
        assert "revoked" in cli("token", "revoke", str(made["id"])).out
        assert client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {made['secret']}"}).status_code == 401
    listed = cli.json("token", "list")
    assert [(row["name"], row["role"], row["valid"]) for row in listed] == [
        ("bob", "user", True),
        ("ada", "viewer", False),
    ]
    told = cli("token", "list").out
    assert "revoked" in told and "bob" in told and made["secret"] not in told and secret not in told
    kept = b"".join(path.read_bytes() for path in cli.home.rglob("*") if path.is_file())
    assert secret.encode() not in kept and made["secret"].encode() not in kept


def test_what_is_wrong_is_said(cli: CommandLine) -> None:
    assert "30d" in cli("token", "create", "x", "--expires", "soon", status=2).err
    assert "no token 7" in cli("token", "revoke", "7", status=2).err
    assert cli.json("token", "list") == []


def test_beyond_loopback_it_starts_only_with_a_token_or_on_purpose(cli: CommandLine) -> None:
    refused = cli("up", "--host", "0.0.0.0", "--port", "0", "--workers", "0", status=1)
    assert "seatrial token create" in refused.err and "SEATRIAL_AUTH=none" in refused.err
    with service_up(cli, "--host", "0.0.0.0", "--workers", "0", SEATRIAL_AUTH="none") as service:
        assert "EVERYBODY" in service.running.err.read_text()
    cli("token", "create", "ada")
    with service_up(cli, "--host", "0.0.0.0", "--workers", "0") as service, service.client() as client:
        assert client.get("/api/v1/jobs").status_code == 401
        assert client.get("/health").status_code == 200
