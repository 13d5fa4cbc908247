"""``seatrial token``: tokens of the service. Works on this installation's store, whether the service runs or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import print_json, with_session
from seatrial.cli.options import AsJson
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.domain.token import Role, Token
    from seatrial.wiring import Installation

app = typer.Typer(help="Create, list and revoke tokens of the service.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the token's owner or purpose.")],
    role: Annotated[str, typer.Option(help="viewer reads, user also runs jobs, admin also manages tokens.")] = "user",
    expires: Annotated[str, typer.Option(help="Lifetime: 30d, 12h, 2w or never.")] = "90d",
    as_json: AsJson = False,
) -> None:
    """Create a token and print its secret. The secret is shown once; only its fingerprint is stored."""
    from seatrial.domain.token import NewToken, fingerprint, fresh_secret, lifetime

    chosen, life = _role(role), lifetime(expires)
    secret = fresh_secret()

    async def work(session: Installation) -> Token:
        now = session.clock()
        until = now + life if life is not None else None
        new = NewToken(name=name, role=chosen, fingerprint=fingerprint(secret), expires_at=until)
        return await session.store.save_token(new, now)

    token = with_session(work)
    if as_json:
        print_json({**token.model_dump(mode="json", exclude={"fingerprint"}), "secret": secret})
        return
    say(secret)
    until = f"valid until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "valid until revoked"
    say(f"Token {token.id} ({token.name}, {token.role}), {until}. The secret is shown only once.", err=True)


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List all tokens, newest first. Secrets are not stored and cannot be shown."""

    async def work(session: Installation) -> None:
        tokens, now = await session.store.tokens(), session.clock()
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

    with_session(work)


@app.command()
def revoke(token_id: Annotated[int, typer.Argument(metavar="ID", help="Id of the token; see `token list`.")]) -> None:
    """Revoke a token and every session that was opened with it."""

    async def work(session: Installation) -> None:
        token = await session.store.revoke_token(token_id, session.clock())
        say(f"Token {token.id} ({token.name}) is revoked.")

    with_session(work)


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
