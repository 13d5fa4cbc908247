"""Triage gives the same on this machine and at a service."""

from __future__ import annotations

import pytest

from seatrial.domain.trial import Outcome
from seatrial.errors import InvalidInput, NotFound
from tests.contracts.backend.place import Place


async def test_notes_tags_labels_and_the_reviewed_mark(place: Place) -> None:
    job = await place.submit("a")
    [row] = await place.backend.jobs.rows(job.id)
    trial, triage = row.trial.id, place.backend.triage
    await triage.note(trial, "Looks flaky.")
    await triage.tag(trial, "flaky not ours")
    await triage.tag(trial, "a?b#c%2f")
    await triage.label(trial, "cause", "the network")
    await triage.review(trial, True)
    found = await triage.get(trial)
    assert [note.text for note in found.notes] == ["Looks flaky."]
    assert [mark.name for mark in found.tags] == ["a?b#c%2f", "flaky not ours"]
    assert [(mark.name, mark.value) for mark in found.labels] == [("cause", "the network")]
    assert found.reviewed is not None and found.reviewed.author == found.notes[0].author != ""
    for name in ("a?b#c%2f", "unknown"):
        await triage.untag(trial, name)
    await triage.unlabel(trial, "cause")
    await triage.review(trial, False)
    found = await triage.get(trial)
    assert ([mark.name for mark in found.tags], found.labels, found.reviewed) == (["flaky not ours"], [], None)
    with pytest.raises(InvalidInput):
        await triage.tag(trial, "a,b")
    with pytest.raises(NotFound):
        await triage.note(trial + 7, "nobody")


async def test_a_job_is_renamed_and_pinned_and_its_numbers_stay(place: Place) -> None:
    job = await place.submit("a", "b")
    await place.work_off(job)
    _, before = await place.backend.jobs.report(job.id, False)
    [listed] = await place.backend.jobs.page(5, None)
    await place.backend.triage.rename(job.id, "The nightly run")
    await place.backend.triage.pin(job.id, True)
    await place.backend.triage.note((await place.backend.jobs.rows(job.id))[0].trial.id, "a note")
    found, counts = await place.backend.jobs.get(job.id)
    assert (found.title, counts.passed) == ("The nightly run", 2)
    [renamed] = await place.backend.jobs.page(5, None)
    assert (renamed.name, renamed.counts, renamed.scores) == ("The nightly run", listed.counts, listed.scores)
    _, after = await place.backend.jobs.report(job.id, False)
    assert before.configurations == after.configurations
    assert await place.outcomes(job) == [Outcome.PASSED, Outcome.PASSED]
    await place.backend.triage.rename(job.id, "")
    assert (await place.backend.jobs.get(job.id))[0].title == job.title


async def test_links_are_made_listed_and_revoked(place: Place) -> None:
    job = await place.submit("a")
    [row] = await place.backend.jobs.rows(job.id)
    triage = place.backend.triage
    first = await triage.share(job.id, None, "7d")
    second = await triage.share(None, row.trial.id, "12h")
    assert first.path == f"/shared#{first.secret}" and triage.address.startswith("http://")
    assert [(link.id, link.trial_id) for link in await triage.links(job.id)] == [
        (second.id, row.trial.id),
        (first.id, None),
    ]
    assert not (await triage.revoke(first.id)).valid
    assert [link.valid for link in await triage.links(None)] == [True, False]
    with pytest.raises(InvalidInput):
        await triage.share(job.id, None, "never")
    with pytest.raises(NotFound):
        await triage.share(None, row.trial.id + 7, "7d")
