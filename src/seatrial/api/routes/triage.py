"""What people add while they look through results, and how they find their way: notes, marks, views, search."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from seatrial.api.context import ServiceDep, TriageActionsDep
from seatrial.api.routes.pages import JobId, TrialId
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.triage import LONGEST_WORD, MarkKind, Neighbours, Note, SavedView
from seatrial.engine.reports.search import Found, search_job
from seatrial.shapes.triage import JobTriage, LabelRequest, NoteRequest, TrialTriage, ViewList, ViewRequest

router = native_router("", "triage")
Word = Annotated[str, Path(min_length=1, max_length=LONGEST_WORD, pattern=r"^[^\x00]*$")]
Number = Annotated[int, Path(ge=1, le=LARGEST_ID)]


@router.get("/trials/{trial_id}/neighbours", responses=errors(404))
async def get_neighbours(service: ServiceDep, trial_id: TrialId) -> Neighbours:
    """The trials before and after this one in its job, in planned order."""
    return await service.installation.store.triage.neighbours(trial_id)


@router.get("/jobs/{job_id}/search", responses=errors(404))
async def search_trials(
    service: ServiceDep,
    job_id: JobId,
    q: Annotated[str, Query(min_length=2, max_length=200, pattern=r"^[^\x00]*$", description="Case is ignored.")],
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="`next` of the previous answer.")] = 0,
) -> Found:
    """Searches messages, tests, agents' steps and verifiers' output of a job's trials, last tries only.

    One answer looks at a limited number of trials and bytes. `next` says where to go on; null means that everything
    was searched.
    """
    store = service.installation.store
    await store.jobs.get(job_id)  # 404 for an unknown job
    async with service.searching:
        return await search_job(store.trials, service.files, job_id, q, after)


@router.get("/trials/{trial_id}/triage", responses=errors(404))
async def get_triage(service: ServiceDep, trial_id: TrialId) -> TrialTriage:
    """Notes, tags, labels and the reviewed mark of a trial."""
    return TrialTriage.of(await service.installation.store.triage.of_trial(trial_id))


@router.get("/jobs/{job_id}/triage", responses=errors(404))
async def list_triage(service: ServiceDep, job_id: JobId) -> JobTriage:
    """Tags, labels, reviewed marks and the number of notes of a job's trials."""
    store = service.installation.store
    await store.jobs.get(job_id)  # 404 for an unknown job
    return JobTriage(items=await store.triage.of_job(job_id))


@router.post("/trials/{trial_id}/notes", status_code=201, responses=errors(400, 404, 409))
async def add_note(actions: TriageActionsDep, trial_id: TrialId, wanted: NoteRequest) -> Note:
    """Adds a note to a trial."""
    return await actions.note(trial_id, wanted.text)


@router.delete("/trials/{trial_id}/notes/{note_id}", status_code=204, responses=errors(404))
async def delete_note(actions: TriageActionsDep, trial_id: TrialId, note_id: Number) -> None:
    """Deletes a note."""
    await actions.store.triage.delete_note(trial_id, note_id)


@router.put("/trials/{trial_id}/tags/{name}", status_code=204, responses=errors(404, 409))
async def add_tag(actions: TriageActionsDep, trial_id: TrialId, name: Word) -> None:
    """Adds a tag to a trial. A tag that it has already stays as it is."""
    await actions.tag(trial_id, name)


@router.delete("/trials/{trial_id}/tags/{name}", status_code=204, responses=errors(404))
async def remove_tag(actions: TriageActionsDep, trial_id: TrialId, name: Word) -> None:
    """Removes a tag from a trial."""
    await actions.store.triage.remove_mark(trial_id, MarkKind.TAG, name)


@router.put("/trials/{trial_id}/labels/{name}", status_code=204, responses=errors(400, 404, 409))
async def set_label(actions: TriageActionsDep, trial_id: TrialId, name: Word, wanted: LabelRequest) -> None:
    """Sets a label of a trial, or replaces its value."""
    await actions.label(trial_id, name, wanted.value)


@router.delete("/trials/{trial_id}/labels/{name}", status_code=204, responses=errors(404))
async def remove_label(actions: TriageActionsDep, trial_id: TrialId, name: Word) -> None:
    """Removes a label from a trial."""
    await actions.store.triage.remove_mark(trial_id, MarkKind.LABEL, name)


@router.put("/trials/{trial_id}/reviewed", status_code=204, responses=errors(404, 409))
async def mark_reviewed(actions: TriageActionsDep, trial_id: TrialId) -> None:
    """Marks a trial as reviewed."""
    await actions.review(trial_id, True)


@router.delete("/trials/{trial_id}/reviewed", status_code=204, responses=errors(404))
async def mark_unreviewed(actions: TriageActionsDep, trial_id: TrialId) -> None:
    """Takes the reviewed mark off a trial."""
    await actions.review(trial_id, False)


@router.get("/views", responses=errors())
async def list_views(service: ServiceDep) -> ViewList:
    """Saved views of lists: filters and order under a name."""
    return ViewList(items=await service.installation.store.triage.views())


@router.post("/views", status_code=201, responses=errors(400, 409))
async def save_view(actions: TriageActionsDep, wanted: ViewRequest) -> SavedView:
    """Saves a view, or replaces the one of the same name."""
    return await actions.save_view(wanted.page, wanted.name, wanted.query)


@router.delete("/views/{view_id}", status_code=204, responses=errors(404))
async def delete_view(actions: TriageActionsDep, view_id: Number) -> None:
    """Deletes a saved view."""
    await actions.store.triage.delete_view(view_id)
