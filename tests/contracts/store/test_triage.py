"""Notes, marks, names, pins and views are kept with their author; they change no number, and go with their job."""

from __future__ import annotations

import pytest

from seatrial.domain.triage import MOST_MARKS, MarkKind, TriageLine, TriageMark, ViewPage
from seatrial.errors import Conflict, NotFound
from seatrial.ports.store import JobFilter, Page, Store, TrialFilter
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON, all_trials, submit


def mark(trial_id: int, kind: MarkKind, name: str = "", value: str = "", author: str = "ada") -> TriageMark:
    return TriageMark(trial_id=trial_id, kind=kind, name=name, value=value, author=author, at=NOON)


async def chosen(store: Store, **which: object) -> list[int]:
    found = await store.trials.summaries(TrialFilter(**which), Page())  # type: ignore[arg-type]
    return sorted(summary.trial.id for summary in found)


async def test_what_is_added_to_a_trial_is_kept_with_its_author(store: Store, open_store: StoreOpener) -> None:
    await submit(store, trials=2)
    first, second = [row.trial.id for row in await all_trials(store)]
    note = await store.triage.add_note(first, "Looks like\na flaky test.", "ada", NOON)
    await store.triage.put_mark(mark(first, MarkKind.TAG, "flaky"))
    await store.triage.put_mark(mark(first, MarkKind.LABEL, "cause", "network"))
    await store.triage.put_mark(mark(first, MarkKind.LABEL, "cause", "disk", author="bob"))
    await store.triage.put_mark(mark(first, MarkKind.REVIEWED))
    await store.triage.put_mark(mark(second, MarkKind.TAG, "odd"))
    other = await open_store()
    found = await other.triage.of_trial(first)
    assert found.notes == (note,) and (note.author, note.at) == ("ada", NOON)
    assert [(each.kind.value, each.name, each.value, each.author) for each in found.marks] == [
        ("label", "cause", "disk", "bob"),
        ("reviewed", "", "", "ada"),
        ("tag", "flaky", "", "ada"),
    ]
    assert await other.triage.of_job(1) == [
        TriageLine(trial_id=first, tags=("flaky",), labels={"cause": "disk"}, reviewed=True, notes=1),
        TriageLine(trial_id=second, tags=("odd",)),
    ]


async def test_trials_are_found_by_what_was_added(store: Store) -> None:
    await submit(store, trials=3)
    a, b, c = [row.trial.id for row in await all_trials(store)]
    await store.triage.put_mark(mark(a, MarkKind.TAG, "flaky"))
    await store.triage.put_mark(mark(b, MarkKind.LABEL, "cause", "disk"))
    await store.triage.put_mark(mark(b, MarkKind.REVIEWED))
    await store.triage.add_note(c, "Ask the author.", "ada", NOON)
    assert await chosen(store, tag="flaky") == [a]
    assert await chosen(store, tag="cause") == []
    assert await chosen(store, label="cause") == [b]
    assert await chosen(store, label="cause=disk") == [b]
    assert await chosen(store, label="cause=net") == []
    assert (await chosen(store, reviewed=True), await chosen(store, reviewed=False)) == ([b], [a, c])
    assert (await chosen(store, noted=True), await chosen(store, noted=False)) == ([c], [a, b])
    await store.triage.remove_mark(a, MarkKind.TAG, "flaky")
    await store.triage.remove_mark(a, MarkKind.TAG, "flaky")
    assert await chosen(store, tag="flaky") == []


async def test_numbers_and_events_do_not_change(store: Store) -> None:
    job = await submit(store, trials=1)
    [row] = await all_trials(store)
    before = (
        await store.jobs.numbers([job.id]),
        await store.trials.numbers(job.id),
        await store.events.read(job_id=job.id),
    )
    await store.triage.add_note(row.trial.id, "a note", "ada", NOON)
    await store.triage.put_mark(mark(row.trial.id, MarkKind.REVIEWED))
    await store.triage.rename_job(job.id, "another", "ada", NOON)
    assert before == (
        await store.jobs.numbers([job.id]),
        await store.trials.numbers(job.id),
        await store.events.read(job_id=job.id),
    )
    assert await all_trials(store) == [row]


async def test_everything_goes_with_its_job(store: Store) -> None:
    job, kept = await submit(store), await submit(store)
    gone, stays = [row.trial.id for row in await all_trials(store)]
    for trial in (gone, stays):
        await store.triage.add_note(trial, "a note", "ada", NOON)
        await store.triage.put_mark(mark(trial, MarkKind.TAG, "odd"))
    await store.jobs.cancel(job.id, NOON)
    await store.jobs.delete(job.id)
    assert await store.triage.of_job(job.id) == []
    with pytest.raises(NotFound):
        await store.triage.of_trial(gone)
    assert [line.trial_id for line in await store.triage.of_job(kept.id)] == [stays]
    assert len((await store.triage.of_trial(stays)).notes) == 1


async def test_unknown_trials_and_too_many_marks_are_refused(store: Store) -> None:
    await submit(store)
    [row] = await all_trials(store)
    unknown = row.trial.id + 7
    with pytest.raises(NotFound):
        await store.triage.add_note(unknown, "a note", "ada", NOON)
    with pytest.raises(NotFound):
        await store.triage.put_mark(mark(unknown, MarkKind.REVIEWED))
    with pytest.raises(NotFound):
        await store.triage.remove_mark(unknown, MarkKind.REVIEWED)
    with pytest.raises(NotFound):
        await store.triage.neighbours(unknown)
    for number in range(MOST_MARKS):
        await store.triage.put_mark(mark(row.trial.id, MarkKind.TAG, f"tag {number}"))
    with pytest.raises(Conflict):
        await store.triage.put_mark(mark(row.trial.id, MarkKind.TAG, "one more"))
    await store.triage.put_mark(mark(row.trial.id, MarkKind.TAG, "tag 1", author="bob"))
    note = await store.triage.add_note(row.trial.id, "a note", "ada", NOON)
    with pytest.raises(NotFound):
        await store.triage.delete_note(unknown, note.id)
    await store.triage.delete_note(row.trial.id, note.id)
    with pytest.raises(NotFound):
        await store.triage.delete_note(row.trial.id, note.id)


async def test_a_job_is_renamed_and_pinned(store: Store, open_store: StoreOpener) -> None:
    job, other = await submit(store), await submit(store)
    await store.triage.rename_job(job.id, "The nightly run", "ada", NOON)
    await store.triage.pin_job(job.id, True, "ada", NOON)
    found = await (await open_store()).jobs.get(job.id)
    assert (found.title, found.spec, found.pinned_at) == ("The nightly run", job.spec, NOON)
    assert [each.id for each in await store.jobs.page(Page(), JobFilter(name="NIGHTLY"))] == [job.id]
    assert [each.id for each in await store.jobs.page(Page(), JobFilter(pinned=True))] == [job.id]
    assert [each.id for each in await store.jobs.page(Page(), JobFilter(pinned=False))] == [other.id]
    await store.triage.rename_job(job.id, None, "ada", NOON)
    await store.triage.pin_job(job.id, False, "ada", NOON)
    assert (await store.jobs.get(job.id)).title == job.title
    assert await store.jobs.page(Page(), JobFilter(pinned=True)) == []
    with pytest.raises(NotFound):
        await store.triage.rename_job(other.id + 7, "nothing", "ada", NOON)


async def test_neighbours_are_those_of_the_same_job(store: Store) -> None:
    await submit(store, trials=2)
    await submit(store)
    await submit(store, trials=1)
    a, b, c, d = [row.trial.id for row in await all_trials(store)]
    places = [await store.triage.neighbours(trial) for trial in (a, b, c, d)]
    assert [(each.previous, each.next, each.place, each.total) for each in places] == [
        (None, b, 1, 2),
        (a, None, 2, 2),
        (None, None, 1, 1),
        (None, None, 1, 1),
    ]


async def test_views_are_saved_by_name(store: Store, open_store: StoreOpener) -> None:
    first = await store.triage.save_view(ViewPage.TRIALS, "failed", "outcome=failed", "ada", NOON)
    await store.triage.save_view(ViewPage.JOBS, "failed", "status=completed", "ada", NOON)
    again = await store.triage.save_view(ViewPage.TRIALS, "failed", "outcome=error", "bob", NOON + MINUTE)
    assert again.id == first.id
    found = await (await open_store()).triage.views()
    assert [(view.page.value, view.query, view.author) for view in found] == [
        ("jobs", "status=completed", "ada"),
        ("trials", "outcome=error", "bob"),
    ]
    await store.triage.delete_view(first.id)
    assert len(await store.triage.views()) == 1
    with pytest.raises(NotFound):
        await store.triage.delete_view(first.id)
