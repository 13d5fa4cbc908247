"""Tokens are found by their fingerprint; provider keys rest sealed and are replaced, listed and deleted by name."""

from __future__ import annotations

import pytest

from seatrial.domain.token import NewToken, Role, fingerprint, fresh_secret
from seatrial.errors import NotFound
from seatrial.ports.store import ProviderKey, Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON


def a_token(name: str, role: Role = Role.USER) -> tuple[str, NewToken]:
    secret = fresh_secret()
    return secret, NewToken(name=name, role=role, fingerprint=fingerprint(secret), expires_at=NOON + 60 * MINUTE)


async def test_a_token_is_found_by_its_fingerprint_alone(store: Store, open_store: StoreOpener) -> None:
    secret, new = a_token("mine", Role.ADMIN)
    _, other = a_token("yours")
    saved = await store.tokens.save(new, NOON)
    await store.tokens.save(other, NOON)
    assert (saved.name, saved.role, saved.created_at, saved.used_at) == ("mine", Role.ADMIN, NOON, None)
    assert saved.expires_at == NOON + 60 * MINUTE
    found = await (await open_store()).tokens.get(fingerprint(secret))
    assert found == saved
    for unknown in (fingerprint(fresh_secret()), secret, "", new.fingerprint.upper()):
        assert await store.tokens.get(unknown) is None
    assert [token.name for token in await store.tokens.all()] == ["yours", "mine"]


async def test_a_revoked_token_stays_listed_and_keeps_its_first_moment(store: Store) -> None:
    secret, new = a_token("mine")
    token = await store.tokens.save(new, NOON)
    assert token.is_valid(NOON) and not token.is_valid(NOON + 60 * MINUTE)
    assert (await store.tokens.revoke(token.id, NOON + MINUTE)).revoked_at == NOON + MINUTE
    assert (await store.tokens.revoke(token.id, NOON + 2 * MINUTE)).revoked_at == NOON + MINUTE
    kept = await store.tokens.get(fingerprint(secret))
    assert kept is not None and not kept.is_valid(NOON)
    assert await store.tokens.all() == [kept]
    with pytest.raises(NotFound):
        await store.tokens.revoke(token.id + 1, NOON)


async def test_use_is_noted(store: Store) -> None:
    secret, new = a_token("mine")
    _, other = a_token("yours")
    token, idle = await store.tokens.save(new, NOON), await store.tokens.save(other, NOON)
    await store.tokens.note_use(token.id, NOON + MINUTE)
    await store.tokens.note_use(token.id + 7, NOON + MINUTE)  # gone meanwhile: nothing to note
    used = await store.tokens.get(fingerprint(secret))
    assert used is not None and used.used_at == NOON + MINUTE
    assert await store.tokens.get(idle.fingerprint) == idle


async def test_provider_keys_are_replaced_and_deleted_by_name(store: Store, open_store: StoreOpener) -> None:
    assert await store.provider_keys.all() == []
    await store.provider_keys.save("OPENAI_API_KEY", "sealed-1", NOON)
    await store.provider_keys.save("HF_TOKEN", "sealed-2", NOON)
    await store.provider_keys.save("OPENAI_API_KEY", "sealed-3", NOON + MINUTE)
    kept = await (await open_store()).provider_keys.all()
    assert kept == [
        ProviderKey(name="HF_TOKEN", sealed="sealed-2", set_at=NOON),
        ProviderKey(name="OPENAI_API_KEY", sealed="sealed-3", set_at=NOON + MINUTE),
    ]
    await store.provider_keys.delete("HF_TOKEN")
    assert [key.name for key in await store.provider_keys.all()] == ["OPENAI_API_KEY"]
    with pytest.raises(NotFound):
        await store.provider_keys.delete("HF_TOKEN")
