"""``seatrial token``: tokens of the service. Works on this installation's store, whether the service runs or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_installation, print_json
from seatrial.cli.options import AsJson
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.domain.token import Role, Token
    from seatrial.wiring import Installation

app = typer.Typer(help="Create, list and revoke tokens of the service.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@on_installation
async def create(
    installation: Installation,
    name: Annotated[str, typer.Argument(help="Name of the token's owner or purpose.")],
    role: Annotated[str, typer.Option(help="viewer reads, user also runs jobs, admin also manages tokens.")] = "user",
    expires: Annotated[str, typer.Option(help="Lifetime: 30d, 12h, 2w or never.")] = "90d",
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
    for token in tokens:
        used = f"used {token.used_at:%Y-%m-%d %H:%M}" if token.used_at else "never used"
        state = _state(token, token.is_valid(now))
        say(f"{token.id:>4}  {token.role:<6}  {state:<22}  {used:<21}  {token.name}")
    if not tokens:
        say("No tokens. Create one with `seatrial token create NAME`.", err=True)


@app.command()
@on_installation
async def revoke(
    installation: Installation,
    token_id: Annotated[int, typer.Argument(metavar="ID", help="Id of the token; see `token list`.")],
) -> None:
    """Revoke a token and every installation that was opened with it."""
    token = await installation.store.tokens.revoke(token_id, installation.clock())
    say(f"Token {token.id} ({token.name}) is revoked.")


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
