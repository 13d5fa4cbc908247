"""Read-only links are found by their fingerprint, and end with their job, their token or when they are revoked."""

from __future__ import annotations

import pytest

from seatrial.domain.link import NewLink, fresh_link_secret
from seatrial.domain.token import NewToken, Role, fingerprint
from seatrial.errors import NotFound
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, all_trials, submit


def a_link(job_id: int, trial_id: int | None = None, token_id: int | None = None) -> tuple[str, NewLink]:
    secret = fresh_link_secret()
    new = NewLink(
        fingerprint=fingerprint(secret),
        job_id=job_id,
        trial_id=trial_id,
        author="ada",
        token_id=token_id,
        expires_at=NOON + 60 * MINUTE,
    )
    return secret, new


async def test_a_link_is_found_by_its_fingerprint_alone(store: Store) -> None:
    job = await submit(store)
    [row] = await all_trials(store)
    secret, new = a_link(job.id, row.trial.id)
    saved = await store.links.save(new, NOON)
    assert await store.links.find(fingerprint(secret)) == saved
    for unknown in (secret, "", fingerprint(fresh_link_secret()), new.fingerprint.upper()):
        assert await store.links.find(unknown) is None
    assert saved.is_valid(NOON) and not saved.is_valid(NOON + 60 * MINUTE)
    assert (await store.links.all(), await store.links.all(job.id + 1)) == ([saved], [])
    assert (await store.links.revoke(saved.id, NOON + MINUTE)).revoked_at == NOON + MINUTE
    assert (await store.links.revoke(saved.id, NOON + 2 * MINUTE)).revoked_at == NOON + MINUTE
    with pytest.raises(NotFound):
        await store.links.revoke(saved.id + 1, NOON)


async def test_a_link_ends_with_the_token_that_made_it(store: Store) -> None:
    job = await submit(store)
    token = await store.tokens.save(
        NewToken(name="ada", role=Role.USER, fingerprint="f1", expires_at=NOON + 30 * MINUTE), NOON
    )
    secret, new = a_link(job.id, token_id=token.id)
    await store.links.save(new, NOON)
    found = await store.links.find(fingerprint(secret))
    assert found is not None and found.expires_at == NOON + 30 * MINUTE and found.is_valid(NOON)
    await store.tokens.revoke(token.id, NOON + MINUTE)
    found = await store.links.find(fingerprint(secret))
    assert found is not None and found.revoked_at == NOON + MINUTE and not found.is_valid(NOON)


async def test_links_go_with_their_job(store: Store) -> None:
    job, other = await submit(store), await submit(store)
    secret, new = a_link(job.id)
    _, kept = a_link(other.id)
    await store.links.save(new, NOON)
    await store.links.save(kept, NOON)
    await store.jobs.cancel(job.id, NOON)
    await store.jobs.delete(job.id)
    assert await store.links.find(fingerprint(secret)) is None
    assert [link.job_id for link in await store.links.all()] == [other.id]


async def test_it_is_told_what_belongs_to_a_job(store: Store) -> None:
    job = await submit(store, trials=2)
    await submit(store)
    first, second, other = [row.trial for row in await all_trials(store)]
    assert await store.links.job_of(first.id) == job.id != await store.links.job_of(other.id)
    assert await store.links.job_of(other.id + 7) is None
    assert await store.links.uses(job.id, None, second.task.digest)
    assert await store.links.uses(job.id, second.id, second.task.digest)
    assert not await store.links.uses(job.id, first.id, second.task.digest)
    assert not await store.links.uses(job.id, None, "sha256:other")
