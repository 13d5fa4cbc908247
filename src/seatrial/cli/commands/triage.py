"""What people add while they look through results: ``seatrial trial note``, ``job rename``, ``link`` and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson, JobId, TrialId
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend
    from seatrial.shapes.triage import LinkMade, TrialTriage

links = Commands(help="List and revoke read-only links.")
Expires = Annotated[str, typer.Option(help="Lifetime: 7d, 12h, at most 90d.")]
Undo = Annotated[bool, typer.Option("--undo", help="Undo this.")]


@on_backend
async def note(
    backend: Backend,
    trial_id: TrialId,
    text: Annotated[str | None, typer.Argument(help="The note. Without it, what was added is shown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a note to a trial, or show its notes, tags, labels and reviewed mark."""
    if text is not None:
        await backend.triage.note(trial_id, text)
    found = await backend.triage.get(trial_id)
    if as_json:
        print_json(found)
    else:
        _print(found)


@on_backend
async def tag(
    backend: Backend,
    trial_id: TrialId,
    names: Annotated[list[str], typer.Argument(metavar="TAG…", help="Tags, or labels as NAME=VALUE.")],
    undo: Undo = False,
) -> None:
    """Add tags and labels to a trial. With --undo, remove them; of a label the name is enough."""
    for name in names:
        word, is_label, value = name.partition("=")
        if undo:
            await backend.triage.untag(trial_id, word.strip())
            await backend.triage.unlabel(trial_id, word.strip())
        elif is_label:
            await backend.triage.label(trial_id, word, value)
        else:
            await backend.triage.tag(trial_id, name)
    _print(await backend.triage.get(trial_id))


@on_backend
async def review(
    backend: Backend,
    trial_ids: Annotated[list[int], typer.Argument(metavar="TRIAL…", help="Numbers of trials.")],
    undo: Undo = False,
) -> None:
    """Mark trials as reviewed. Results and scores stay as they are."""
    for trial_id in trial_ids:
        await backend.triage.review(trial_id, not undo)
    say(f"{len(trial_ids)} trial(s) marked as {'not ' if undo else ''}reviewed")


@on_backend
async def share_trial(backend: Backend, trial_id: TrialId, expires: Expires = "7d", as_json: AsJson = False) -> None:
    """Create a read-only link to a trial. It is shown only now."""
    _print_link(backend, await backend.triage.share(None, trial_id, expires), as_json)


@on_backend
async def rename(
    backend: Backend,
    job_id: JobId,
    name: Annotated[str, typer.Argument(help="The new name. An empty one restores the first name.")],
) -> None:
    """Rename a job. What it ran stays as it is."""
    await backend.triage.rename(job_id, name)
    say(f"job {job_id}: {(await backend.jobs.get(job_id))[0].title}")


@on_backend
async def pin(backend: Backend, job_id: JobId, undo: Undo = False) -> None:
    """Pin a job to the top of the page's list."""
    await backend.triage.pin(job_id, not undo)
    say(f"job {job_id}: {'not ' if undo else ''}pinned")


@on_backend
async def share_job(backend: Backend, job_id: JobId, expires: Expires = "7d", as_json: AsJson = False) -> None:
    """Create a read-only link to a job. It is shown only now."""
    _print_link(backend, await backend.triage.share(job_id, None, expires), as_json)


@links.command("list")
@on_backend
async def list_links(
    backend: Backend,
    job: Annotated[int | None, typer.Option(help="Only links to this job and its trials.")] = None,
    as_json: AsJson = False,
) -> None:
    """List read-only links, newest first. Their secrets are not kept."""
    found = await backend.triage.links(job)
    if as_json:
        print_json(list(found))
        return
    if not found:
        say("No links. Create one with: seatrial job share JOB")
    for link in found:
        shown = f"job {link.job_id}" if link.trial_id is None else f"trial {link.trial_id}"
        until = f"until {link.expires_at:%Y-%m-%d %H:%M}" if link.valid else "ended"
        say(f"{link.id:>5}  {shown:<14} {until:<24} {link.author}")


@links.command()
@on_backend
async def revoke(
    backend: Backend, link_id: Annotated[int, typer.Argument(metavar="LINK", min=1, help="Number of the link.")]
) -> None:
    """Revoke a read-only link. It is refused from now on."""
    await backend.triage.revoke(link_id)
    say(f"link {link_id} is revoked")


def _print_link(backend: Backend, link: LinkMade, as_json: bool) -> None:
    if as_json:
        print_json({**link.model_dump(mode="json"), "address": backend.triage.address + link.path})
        return
    say(backend.triage.address + link.path)
    say(f"Valid until {link.expires_at:%Y-%m-%d %H:%M}. Revoke it with: seatrial link revoke {link.id}", err=True)


def _print(found: TrialTriage) -> None:
    parts = [*(mark.name for mark in found.tags), *(f"{mark.name}={mark.value}" for mark in found.labels)]
    if found.reviewed is not None:
        parts.append(f"reviewed by {found.reviewed.author}")
    say(f"trial {found.trial_id}: {', '.join(parts) or 'no tags'}")
    for each in found.notes:
        say(f"{each.at:%Y-%m-%d %H:%M} {each.author}:")
        for line in each.text.splitlines():
            say(f"  {line}")
