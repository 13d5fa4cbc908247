"""The installation's provider keys. Admins set and delete them; nobody can read one back."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from seatrial.api.context import ServiceDep
from seatrial.api.routes.router import native_router
from seatrial.shapes.access import KeyItem, KeyPage, KeyValue

router = native_router("/keys", "access", 400, 404)
KeyName = Annotated[str, Path(max_length=64, description="The environment variable, such as OPENROUTER_API_KEY.")]


@router.get("")
async def list_keys(service: ServiceDep) -> KeyPage:
    """Lists names only. Keys from the server's environment are not included: they are not stored."""
    kept = await service.installation.store.provider_keys()
    return KeyPage(items=[KeyItem(name=key.name, set_at=key.set_at) for key in kept])


@router.put("/{name}", status_code=204)
async def set_key(name: KeyName, given: KeyValue, service: ServiceDep) -> None:
    """Stores a key, encrypted. Replaces an earlier one."""
    installation = service.installation
    await installation.keys.keep(name, given.value.get_secret_value(), installation.clock())


@router.delete("/{name}", status_code=204)
async def delete_key(name: KeyName, service: ServiceDep) -> None:
    """Deletes a key."""
    await service.installation.store.delete_provider_key(name)
