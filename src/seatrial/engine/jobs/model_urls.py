"""Decides which models and model addresses a caller may name.

Callers must not reach the operator's network through the service. So an address must be one that the operator listed,
unless only this machine can call the service. Every API checks this before it stores a job. The gate
prevents such an address from redirecting to another one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.domain.agents.catalogue import (
    ADDRESSED_PROVIDERS,
    USUAL_PROVIDERS,
    addresses_for,
    provider_of,
    runs_on_host,
)
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.errors import InvalidInput

# One strict form, so that all programs parse an address alike: no user-info, no fragment, no backslash, and no percent
# sign or non-ASCII letter in the host.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>/[A-Za-z0-9._~!$&'()*+,;=:%/-]*)?(?P<query>\?[A-Za-z0-9._~!$&'()*+,;=:%/-]*)?",
    re.IGNORECASE,
)
_ADDRESS_NAME = re.compile(r"(?:api_base|base_url|api_url|endpoint|proxy)$", re.IGNORECASE)
_LOOKS_LIKE_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*:[/\\]{2}", re.IGNORECASE)
_KNOWN_PLACES = ("options.api_base", "options.base_url")
"""The runner replaces an address in these places by a door of the gate."""
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Place:
    """The server of an address."""

    scheme: str
    host: str
    port: int


class ModelUrls:
    """The rules of one service. ``anywhere`` allows every address, for a server that only this machine can call."""

    def __init__(
        self, listed: str, *, anywhere: bool, providers: str = "", own_addresses: Collection[str] = ()
    ) -> None:
        """``listed`` and ``providers`` are settings: addresses, and providers besides the usual ones. ``own_addresses``
        are names of variables in which the operator set the address of a provider."""
        self._anywhere = anywhere
        self._providers = USUAL_PROVIDERS | frozenset(providers.lower().replace(",", " ").split())
        self._own_addresses = frozenset(own_addresses)
        self._places = frozenset(place for entry in re.split(r"[,\s]+", listed) if entry for place in _listed(entry))

    def check(self, url: str, field: str) -> str:
        """Returns the address, or raises ``InvalidInput`` for that field if a caller may not name it."""
        place = _place(url)
        if place is None:
            raise InvalidInput(
                "The model's address is not a plain http or https address.",
                field=field,
                fix="Write it as https://host:port/path, without a user name; a key goes into its own field.",
            )
        if not self._anywhere and place not in self._places:
            raise InvalidInput(
                f"The model's address {place.scheme}://{place.host}:{place.port} is not allowed on this server.",
                field=field,
                fix="Its operator can add it to SEATRIAL_MODEL_URL_ALLOWLIST.",
            )
        return url

    def admit(self, spec: JobSpec) -> JobSpec:
        """Returns the job, or raises if an address in it is not allowed. A job with an address gets no keys of the
        installation."""
        named = [self.check_agent(agent) for agent in spec.agents]
        return spec.model_copy(update={"own_keys": False}) if any(named) else spec

    def check_model(self, model: str, addressed: bool, field: str = "model") -> None:
        """Refuses a model whose provider callers may not use: one on this machine, or one that is called with this
        machine's credentials. ``addressed``: the job also names an allowed address."""
        if self._anywhere:
            return
        if not _MODEL.fullmatch(model) or "//" in model:
            raise InvalidInput("This is not the name of a model.", field=field, fix="Write it as provider/model.")
        provider = provider_of(model)
        usable = ADDRESSED_PROVIDERS if addressed else self._providers
        set_here = not addressed and not self._own_addresses.isdisjoint(addresses_for(model))
        if provider not in usable and not set_here:
            raise InvalidInput(
                f"Models of {provider or model!r} are not allowed on this server.",
                field=field,
                fix="Name a usual provider, or give the model's address as api_base. The operator of this server can "
                "add others to SEATRIAL_MODEL_PROVIDERS.",
            )

    def check_agent(self, agent: AgentSpec) -> bool:
        """Returns whether the options or environment of the agent name an address. Refuses one that is not allowed."""
        if agent.model is not None and runs_on_host(agent.name):
            self.check_model(agent.model, not {"api_base", "base_url"}.isdisjoint(agent.options))
        named = [*_addresses(agent.options, "options"), *_addresses(agent.env, "env")]
        for field, url in named:
            self.check(url, field)
            if not self._anywhere and field.startswith("options.") and field not in _KNOWN_PLACES:
                raise InvalidInput(
                    f"{field} must not contain an address.", field=field, fix="Give the model's address as api_base."
                )
        return bool(named)


def _addresses(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Every value whose name or form is that of an address, at any depth, because agents pass their options on."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _addresses(inner, f"{field}.{name}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for index, inner in enumerate(value):
            yield from _addresses(inner, f"{field}.{index}")
    elif isinstance(value, str) and value and (_ADDRESS_NAME.search(field) or _LOOKS_LIKE_URL.match(value)):
        yield field, value


def _place(url: str) -> _Place | None:
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"] or _PORTS[scheme])
    return _Place(scheme, host, port) if 0 < port < 65536 else None


def _listed(entry: str) -> Iterator[_Place]:
    """An entry without a scheme means both schemes. One without a port means the default port."""
    candidates = [entry] if "://" in entry else [f"{scheme}://{entry}" for scheme in _PORTS]
    places = [_place(candidate.rstrip("/")) for candidate in candidates]
    if None in places:
        raise InvalidInput(
            f"{entry!r} in SEATRIAL_MODEL_URL_ALLOWLIST is not the address of a server.",
            field="model_url_allowlist",
            fix="Write https://host, http://host:port or host:port.",
        )
    yield from (place for place in places if place is not None)
