"""Read-only links: create, list and revoke them, and what the link of a request shows."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from seatrial.api.context import ServiceDep, TriageActionsDep
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.link import Link
from seatrial.domain.numbers import LARGEST_ID
from seatrial.errors import InvalidInput, NotFound
from seatrial.shapes.triage import LinkItem, LinkMade, LinkPage, LinkRequest, Opened

router = native_router("", "links")


@router.post("/links", status_code=201, responses=errors(400, 404))
async def create_link(actions: TriageActionsDep, wanted: LinkRequest) -> LinkMade:
    """Creates a read-only link to one job or one trial. Only this answer contains its secret.

    The link ends when it expires or is revoked, and with the token that created it.
    """
    if (wanted.job is None) == (wanted.trial is None):
        raise InvalidInput("A link shows one job or one trial.", field="job", fix="Send either `job` or `trial`.")
    secret, link = await (
        actions.share_job(wanted.job, wanted.expires)
        if wanted.job is not None
        else actions.share_trial(wanted.trial or 0, wanted.expires)
    )
    item = LinkItem.of(link, actions.clock())
    return LinkMade(**item.model_dump(), secret=secret, path=f"/shared#{secret}")


@router.get("/links", responses=errors())
async def list_links(
    service: ServiceDep, job: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Only of this job.")] = None
) -> LinkPage:
    """Read-only links, newest first, without their secrets."""
    now = service.installation.clock()
    return LinkPage(items=[LinkItem.of(link, now) for link in await service.installation.store.links.all(job)])


@router.delete("/links/{link_id}", responses=errors(404))
async def revoke_link(actions: TriageActionsDep, link_id: Annotated[int, Path(ge=1, le=LARGEST_ID)]) -> LinkItem:
    """Revokes a link. It is refused from now on."""
    now = actions.clock()
    return LinkItem.of(await actions.store.links.revoke(link_id, now), now)


@router.get("/shared", responses=errors(404))
async def get_shared(request: Request) -> Opened:
    """What the read-only link of this request shows. 404 without a link."""
    link: Link | None = request.scope.get("seatrial.link")
    if link is None:
        raise NotFound("This request has no read-only link.")
    return Opened(job_id=link.job_id, trial_id=link.trial_id, expires_at=link.expires_at)
