"""Which models and addresses of models a caller may name.

A service that others can reach must not become their way into its operator's network. So a caller's address has to be
one that the operator listed, unless nobody but this machine can call. Asked by every door of the service before a job
is made; the sandboxes' relay sees to it that such an address cannot send its callers elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.domain.catalogue import (
    ADDRESSED_PROVIDERS,
    USUAL_PROVIDERS,
    addresses_for,
    provider_of,
    runs_on_host,
)
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.errors import InvalidInput

# One strict spelling, so that no two programs read an address differently: no user-info, no backslash, no percent sign
# or foreign letter in the host, no fragment.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>/[A-Za-z0-9._~!$&'()*+,;=:%/-]*)?(?P<query>\?[A-Za-z0-9._~!$&'()*+,;=:%/-]*)?",
    re.IGNORECASE,
)
_ADDRESS_NAME = re.compile(r"(?:api_base|base_url|api_url|endpoint|proxy)$", re.IGNORECASE)
_LOOKS_LIKE_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*:[/\\]{2}", re.IGNORECASE)
_KNOWN_PLACES = ("options.api_base", "options.base_url")
"""Where the runner finds it, and puts a relay in its place."""
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an address leads."""

    scheme: str
    host: str
    port: int


class ModelUrls:
    """The rule of one service. ``anywhere`` on a server that only this machine can call."""

    def __init__(
        self, listed: str, *, anywhere: bool, providers: str = "", own_addresses: Collection[str] = ()
    ) -> None:
        """``listed`` is the setting: addresses separated by commas or spaces, with or without a scheme. ``providers``
        are those that callers may use besides the usual ones, ``own_addresses`` names of variables in which the
        operator set a provider's address."""
        self._anywhere = anywhere
        self._providers = USUAL_PROVIDERS | frozenset(providers.lower().replace(",", " ").split())
        self._own_addresses = frozenset(own_addresses)
        self._places = frozenset(place for entry in re.split(r"[,\s]+", listed) if entry for place in _listed(entry))

    def check(self, url: str, field: str) -> str:
        """The address, if a caller may name it; else ``InvalidInput`` for that field."""
        place = _place(url)
        if place is None:
            raise InvalidInput(
                "The model's address is not a plain http or https address.",
                field=field,
                fix="Write it as https://host:port/path, without a user name; a key goes into its own field.",
            )
        if not self._anywhere and place not in self._places:
            raise InvalidInput(
                f"The model's address {place.scheme}://{place.host}:{place.port} is not one that this server may call.",
                field=field,
                fix="Its operator can add it to SEATRIAL_MODEL_URL_ALLOWLIST.",
            )
        return url

    def admit(self, spec: JobSpec) -> JobSpec:
        """The job, if all addresses in it are allowed. With any, the installation's own keys do not go along."""
        named = [self.check_agent(agent) for agent in spec.agents]
        return spec.model_copy(update={"own_keys": False}) if any(named) else spec

    def check_model(self, model: str, addressed: bool, field: str = "model") -> None:
        """Refuses a model whose name leads elsewhere than to a provider that callers may use: to this machine, or to
        one that is called with this machine's credentials. ``addressed``: an allowed address comes with it."""
        if self._anywhere:
            return
        if not _MODEL.fullmatch(model) or "//" in model:
            raise InvalidInput("That is no name of a model.", field=field, fix="Write it as provider/model.")
        provider = provider_of(model)
        usable = ADDRESSED_PROVIDERS if addressed else self._providers
        set_here = not addressed and not self._own_addresses.isdisjoint(addresses_for(model))
        if provider not in usable and not set_here:
            raise InvalidInput(
                f"Models of {provider or model!r} are not ones that this server may call.",
                field=field,
                fix="Name a usual provider, or give the model's address as api_base. The operator of this server can "
                "add others to SEATRIAL_MODEL_PROVIDERS.",
            )

    def check_agent(self, agent: AgentSpec) -> bool:
        """Whether the agent's options or environment name an address at all. Refuses one that is not allowed."""
        if agent.model is not None and runs_on_host(agent.name):
            self.check_model(agent.model, not {"api_base", "base_url"}.isdisjoint(agent.options))
        named = [*_addresses(agent.options, "options"), *_addresses(agent.env, "env")]
        for field, url in named:
            self.check(url, field)
            if not self._anywhere and field.startswith("options.") and field not in _KNOWN_PLACES:
                raise InvalidInput(
                    f"An address is not taken at {field}.", field=field, fix="Give the model's address as api_base."
                )
        return bool(named)


def _addresses(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Whatever is called or looks like an address, however deep it lies: agents hand their options on."""
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
    """An entry without a scheme stands for both; one without a port for the usual one."""
    candidates = [entry] if "://" in entry else [f"{scheme}://{entry}" for scheme in _PORTS]
    places = [_place(candidate.rstrip("/")) for candidate in candidates]
    if None in places:
        raise InvalidInput(
            f"{entry!r} in SEATRIAL_MODEL_URL_ALLOWLIST is not the address of a server.",
            field="model_url_allowlist",
            fix="Write https://host, http://host:port or host:port.",
        )
    yield from (place for place in places if place is not None)
