"""``seatrial token``: tokens of the service. Works on this installation's store, whether the service runs or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_installation, print_json
from seatrial.cli.options import AsJson
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.columns import Column, print_table
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.domain.token import Role, Token
    from seatrial.wiring import Installation

_LIST = (
    Column("id", right=True),
    Column("role"),
    Column("state"),
    Column("last used", rank=1),
    Column("name", least=12),
)
app = Commands(help="Create, list and revoke tokens of the service.")


@app.command()
@on_installation
async def create(
    installation: Installation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the token's owner or purpose.")],
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="viewer reads, user also runs jobs, admin also manages tokens.")
    ] = "user",
    expires: Annotated[str, typer.Option(metavar="TIME", help="Lifetime: 30d, 12h, 2w or never.")] = "90d",
    as_json: AsJson = False,
) -> None:
    """Create a token and print its secret. The secret is shown once; only its fingerprint is stored."""
    from seatrial.domain.token import NewToken, fingerprint, fresh_secret, lifetime

    secret, life, now = fresh_secret(), lifetime(expires), installation.clock()
    expires_at = now + life if life is not None else None
    new = NewToken(name=name, role=_role(role), fingerprint=fingerprint(secret), expires_at=expires_at)
    token = await installation.store.tokens.save(new, now)
    if as_json:
        print_json({**token.model_dump(mode="json", exclude={"fingerprint"}), "secret": secret})
        return
    say(secret)
    until = f"valid until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "valid until revoked"
    say(f"Token {token.id} ({token.name}, {token.role}), {until}. The secret is shown only once.", err=True)


@app.command("list")
@on_installation
async def list_tokens(installation: Installation, as_json: AsJson = False) -> None:
    """List all tokens, newest first. Secrets are not stored and cannot be shown."""
    tokens, now = await installation.store.tokens.all(), installation.clock()
    if as_json:
        kept = [token.model_dump(mode="json", exclude={"fingerprint"}) for token in tokens]
        print_json([{**row, "valid": token.is_valid(now)} for row, token in zip(kept, tokens, strict=True)])
        return
    if not tokens:
        say("No tokens. Create one with `seatrial token create NAME`.", err=True)
        return
    print_table(_LIST, [_cells(token, token.is_valid(now)) for token in tokens])


@app.command()
@on_installation
async def revoke(
    installation: Installation,
    token_id: Annotated[int, typer.Argument(metavar="TOKEN", help="Number of the token; see `seatrial token list`.")],
) -> None:
    """Revoke a token and every session that was opened with it."""
    token = await installation.store.tokens.revoke(token_id, installation.clock())
    say(f"Token {token.id} ({token.name}) is revoked.")


def _cells(token: Token, valid: bool) -> tuple[str, ...]:
    used = f"{token.used_at:%Y-%m-%d %H:%M}" if token.used_at else "never"
    return (str(token.id), token.role.value, _state(token, valid), used, token.name)


def _state(token: Token, valid: bool) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if not valid:
        return "expired"
    return f"until {token.expires_at:%Y-%m-%d %H:%M}" if token.expires_at else "valid"


def _role(name: str) -> Role:
    """Checked here and not by the option's type, because ``seatrial --help`` would have to import the type."""
    from seatrial.domain.token import Role
    from seatrial.errors import InvalidInput

    try:
        return Role(name)
    except ValueError as error:
        raise InvalidInput(f"Unknown role {name!r}.", field="role", fix=f"Use {', '.join(Role)}.") from error
