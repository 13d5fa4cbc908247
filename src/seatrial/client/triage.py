"""Methods for triage: notes, tags, labels, reviewed marks, names and pins of jobs, views, links and search."""

from __future__ import annotations

from seatrial.client.ask import Ask, given, nothing, place, reads
from seatrial.client.verbs import Group, verb
from seatrial.domain.triage import Neighbours, Note, SavedView, TriageLine, ViewPage
from seatrial.engine.reports.search import Found
from seatrial.shapes.triage import (
    JobChange,
    JobTriage,
    LabelRequest,
    LinkItem,
    LinkMade,
    LinkPage,
    LinkRequest,
    NoteRequest,
    TrialTriage,
    ViewList,
    ViewRequest,
)


def get_triage(trial_id: int) -> Ask[TrialTriage]:
    """Notes, tags, labels and the reviewed mark of a trial."""
    return Ask("GET", place("trials", trial_id, "triage"), reads(TrialTriage))


def list_triage(job_id: int) -> Ask[list[TriageLine]]:
    """The same in short, of all trials of a job to which something was added."""
    return Ask("GET", place("jobs", job_id, "triage"), lambda answer: reads(JobTriage)(answer).items)


def get_neighbours(trial_id: int) -> Ask[Neighbours]:
    """The trials before and after this one in its job."""
    return Ask("GET", place("trials", trial_id, "neighbours"), reads(Neighbours))


def search_trials(job_id: int, text: str, *, after: int = 0) -> Ask[Found]:
    """Searches what the trials of a job left. ``after``: ``next`` of the previous answer."""
    return Ask("GET", place("jobs", job_id, "search"), reads(Found), given(q=text, after=after))


def add_note(trial_id: int, text: str) -> Ask[Note]:
    """Adds a note to a trial."""
    return Ask("POST", place("trials", trial_id, "notes"), reads(Note), body=NoteRequest(text=text))


def delete_note(trial_id: int, note_id: int) -> Ask[None]:
    """Deletes a note."""
    return Ask("DELETE", place("trials", trial_id, "notes", note_id), nothing)


def add_tag(trial_id: int, name: str) -> Ask[None]:
    """Adds a tag to a trial."""
    return Ask("PUT", place("trials", trial_id, "tags", name), nothing)


def remove_tag(trial_id: int, name: str) -> Ask[None]:
    """Removes a tag."""
    return Ask("DELETE", place("trials", trial_id, "tags", name), nothing)


def set_label(trial_id: int, name: str, value: str) -> Ask[None]:
    """Sets a label of a trial."""
    return Ask("PUT", place("trials", trial_id, "labels", name), nothing, body=LabelRequest(value=value))


def remove_label(trial_id: int, name: str) -> Ask[None]:
    """Removes a label."""
    return Ask("DELETE", place("trials", trial_id, "labels", name), nothing)


def mark_reviewed(trial_id: int, reviewed: bool = True) -> Ask[None]:
    """Sets or removes the reviewed mark of a trial."""
    return Ask("PUT" if reviewed else "DELETE", place("trials", trial_id, "reviewed"), nothing)


def change_job(job_id: int, *, name: str | None = None, pinned: bool | None = None) -> Ask[None]:
    """Renames or pins a job. An empty name restores the first one."""
    return Ask("PATCH", place("jobs", job_id), nothing, body=JobChange(name=name, pinned=pinned), repeatable=True)


def list_views() -> Ask[list[SavedView]]:
    """Saved views of lists."""
    return Ask("GET", "/views", lambda answer: reads(ViewList)(answer).items)


def save_view(page: ViewPage, name: str, query: str) -> Ask[SavedView]:
    """Saves a view, or replaces the one of the same name."""
    body = ViewRequest(page=page, name=name, query=query)
    return Ask("POST", "/views", reads(SavedView), body=body, repeatable=True)


def delete_view(view_id: int) -> Ask[None]:
    """Deletes a view."""
    return Ask("DELETE", place("views", view_id), nothing)


def create_link(*, job: int | None = None, trial: int | None = None, expires: str = "7d") -> Ask[LinkMade]:
    """Creates a read-only link to one job or one trial. Only this answer contains its secret."""
    return Ask("POST", "/links", reads(LinkMade), body=LinkRequest(job=job, trial=trial, expires=expires))


def list_links(job: int | None = None) -> Ask[list[LinkItem]]:
    """Read-only links, newest first, without their secrets."""
    return Ask("GET", "/links", lambda answer: reads(LinkPage)(answer).items, given(job=job))


def revoke_link(link_id: int) -> Ask[LinkItem]:
    """Revokes a link."""
    return Ask("DELETE", place("links", link_id), reads(LinkItem))


class Triage[Driver](Group[Driver]):
    """``client.triage``"""

    get = verb(get_triage)
    list = verb(list_triage)
    neighbours = verb(get_neighbours)
    search = verb(search_trials)
    note = verb(add_note)
    delete_note = verb(delete_note)
    tag = verb(add_tag)
    untag = verb(remove_tag)
    label = verb(set_label)
    unlabel = verb(remove_label)
    review = verb(mark_reviewed)
    change_job = verb(change_job)
    views = verb(list_views)
    save_view = verb(save_view)
    delete_view = verb(delete_view)


class Links[Driver](Group[Driver]):
    """``client.links``"""

    create = verb(create_link)
    list = verb(list_links)
    revoke = verb(revoke_link)
