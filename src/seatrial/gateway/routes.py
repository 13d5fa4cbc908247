"""Where the calls of a trial go: the address, the model's own name and the key's header, by the name that agents use.

A route exists for each model that a trial may use. What has no route does not pass. Agents differ in what they call a
model: by LiteLLM's name, without the provider, or by the last part alone. All of them lead to the same route, and the
provider gets its own name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from seatrial.domain.agents.catalogue import addresses_for, keys_for, provider_of
from seatrial.domain.model_calls.prices import NamedPrice
from seatrial.domain.model_calls.provider_addresses import OLLAMA, PROVIDER_ADDRESSES, speaks_a_format
from seatrial.errors import InvalidInput

_NATIVE = frozenset({"anthropic", "gemini"})
"""Agents give these providers an address without a version."""
_VERSION = re.compile(r"/v[0-9]+(?:alpha|beta)?[0-9]*$")
_ENDINGS = ("/chat/completions", "/responses", "/messages", "/embeddings")
_INSIDE = re.compile(r"(?:/api)?(?:/v[0-9]+(?:alpha|beta)?[0-9]*)?(?=/)")
_FIREWORKS = "accounts/fireworks/models/"


@dataclass(frozen=True, slots=True)
class Route:
    """Where the calls of one model go."""

    litellm_name: str
    provider: str
    model: str
    """The provider's own name of it."""
    base: str
    """The provider's address with its version: ``https://openrouter.ai/api/v1``."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every call, with the key. They never reach a sandbox."""
    price: NamedPrice | None = None
    """``None``: not known, unless the provider reports what a call costs."""

    @property
    def account(self) -> str:
        """Calls share a provider's pace if they share a model, an address and an account. One account's limit, or a
        server that a caller chose, must not slow down others."""
        secret = "\0".join([self.base, *self.headers.values()])
        return f"{self.litellm_name[:200]} {hashlib.sha256(secret.encode()).hexdigest()[:12]}"

    def url(self, path: str, query: str = "") -> str:
        """The address of a call. ``path`` is as the agent sent it, with or without a version."""
        below = path[_version_end(path) :]
        return f"{self.base}{below}{'?' if query else ''}{query}"


class Routes:
    """The routes of one trial, by all names of their models."""

    def __init__(self, routes: Iterable[Route], *, online: bool = True) -> None:
        self._routes = tuple(routes)
        self.online = online
        """Whether the provider may reach the internet for this trial: run tools such as a web search, or fetch pictures
        and files by their address. Not if its sandbox may not."""
        self._by_name: dict[str, Route] = {}
        for route in self._routes:
            for name in _names(route):
                self._by_name.setdefault(name, route)

    def of(self, model: str) -> Route | None:
        return self._by_name.get(model)

    @property
    def models(self) -> tuple[str, ...]:
        """The providers' own names."""
        return tuple(dict.fromkeys(route.model for route in self._routes))

    def __len__(self) -> int:
        return len(self._routes)


def route_to(model: str, key: str | None, address: str | None = None) -> Route | None:
    """The route of a model by LiteLLM's name; ``None`` if its provider speaks none of the wire formats.

    ``address`` is that of a server that the user or the operator named."""
    provider, name = provider_of(model), _without_provider(model)
    base = _with_version(provider, address) if address else PROVIDER_ADDRESSES.get(provider)
    if provider in OLLAMA:  # its own format is none of ours, but it speaks OpenAI's as well
        base = _VERSION.sub("", (address or "http://localhost:11434").rstrip("/")) + "/v1"
    if base is None or not speaks_a_format(provider):
        return None
    if provider == "fireworks_ai" and "/" not in name:
        name = _FIREWORKS + name
    return Route(model, provider, name, _checked(base), _key_headers(provider, key))


def host_address(route: Route, door: str) -> str:
    """The address that LiteLLM in this process gets for the route's provider, ``door`` being that of the door."""
    return f"{door}{'/v1beta' if route.provider == 'gemini' else '' if route.provider == 'anthropic' else '/v1'}"


def host_model(route: Route, model: str) -> str:
    """The name that LiteLLM in this process gets, so that it speaks a format that passes the gate.

    Under its own provider's name, Harbor takes a model of vLLM only with its limits and without a slash."""
    return f"openai/{route.model}" if route.provider in (*OLLAMA, "hosted_vllm") else model


def agent_variables(route: Route, door: str, placeholder: str) -> dict[str, str]:
    """The variables from which an agent inside a sandbox reads its model's address and key."""
    addresses, keys = addresses_for(route.litellm_name), keys_for(route.litellm_name)
    match route.provider:
        case "anthropic":
            found = dict.fromkeys(addresses, door) | {"ANTHROPIC_BASE_URL": door}
        case "gemini":
            found = dict.fromkeys(addresses, f"{door}/v1beta") | {"GOOGLE_GEMINI_BASE_URL": door}
        case _:
            # Such a server may speak further formats: OpenRouter, vLLM, a proxy, scripted models. What it does not
            # speak, it refuses. So an agent of any format can be used, and none calls its provider past the gate.
            found = dict.fromkeys((*addresses, "OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{door}/v1")
            found |= dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), door)
            keys = (*keys, "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
    return found | dict.fromkeys(keys, placeholder)


def _key_headers(provider: str, key: str | None) -> dict[str, str]:
    if not key:
        return {}
    match provider:
        case "anthropic":
            return {"x-api-key": key}
        case "gemini":
            return {"x-goog-api-key": key}
        case _:
            return {"authorization": f"Bearer {key}"}


def _without_provider(model: str) -> str:
    provider, slash, name = model.partition("/")
    return name if slash and provider == provider_of(model) else model


def _names(route: Route) -> Iterable[str]:
    yield route.model
    yield route.litellm_name
    yield _without_provider(route.litellm_name)
    yield route.model.rpartition("/")[2]
    yield f"openai/{route.model}"  # LiteLLM's name of a model at any server that speaks OpenAI's format


def _with_version(provider: str, address: str) -> str:
    base = address.partition("?")[0].rstrip("/")
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    if provider not in _NATIVE or _VERSION.search(urlsplit(base).path):
        return base
    return f"{base}{'/v1beta' if provider == 'gemini' else '/v1'}"


def _version_end(path: str) -> int:
    found = _INSIDE.match(path)
    return found.end() if found else 0


def _checked(base: str) -> str:
    """The address without a query, as every program reads it."""
    address = urlsplit(base)
    try:
        plain = address.scheme in ("http", "https") and address.hostname and not address.username and address.port != 0
    except ValueError:  # the port is no number
        plain = False
    if not plain:
        raise InvalidInput(f"{base!r} is not the address of a model.", field="api_base")
    return f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}"
