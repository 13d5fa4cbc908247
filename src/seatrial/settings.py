"""The only reader of environment variables, ``.env`` and ``seatrial.toml``.

``SEATRIAL_*`` names win over the compatibility names of the systems that Seatrial replaces. Precedence: environment,
``.env``, ``seatrial.toml``, default. Every field has a docstring and a line in ``docs/reference/settings.md``; a test
compares them.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AliasChoices, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from seatrial.domain.described import Described

_PROVIDER_SUFFIXES = ("_API_KEY", "_API_BASE", "_BASE_URL", "HF_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


def _names(field: str, compatibility_name: str) -> Any:
    """``SEATRIAL_<FIELD>`` first, then the name that another system's users already have in their ``.env``."""
    return AliasChoices(f"SEATRIAL_{field.upper()}", compatibility_name)


def _is_provider_name(name: str, value: object) -> bool:
    known = name.endswith(_PROVIDER_SUFFIXES) and not name.startswith("SEATRIAL_")
    return known and isinstance(value, str) and value != ""


class Settings(Described, BaseSettings):
    """How this installation runs."""

    model_config = SettingsConfigDict(
        env_prefix="SEATRIAL_",
        env_file=".env",
        toml_file="seatrial.toml",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
    )

    home: Path = Path.home() / ".seatrial"
    """Where this installation keeps its state: database, task files, results."""
    cache: Path = Path.home() / ".cache" / "seatrial"
    """Where images live; shared between homes, so that two homes never build twice."""
    database_url: str = Field(default="", validation_alias=_names("database_url", "DATABASE_URL"))
    """``postgresql://user:password@host/name``, or empty for SQLite in ``home``."""
    database_connections: int = Field(default=5, ge=2)
    """Most connections to PostgreSQL that the API's process opens, and each command."""
    worker_database_connections: int = Field(default=3, ge=2)
    """Most connections to PostgreSQL that each worker process opens."""
    blobs_url: str = ""
    """``s3://bucket/prefix`` or another object store; empty for files in ``home``."""
    storage_backend: Literal["local", "s3"] = Field(
        default="local", validation_alias=_names("storage_backend", "STORAGE_BACKEND")
    )
    """``s3`` keeps files in ``s3_bucket_name`` where ``blobs_url`` says nothing."""
    s3_bucket_name: str = Field(default="", validation_alias=_names("s3_bucket_name", "S3_BUCKET_NAME"))
    """Bucket for ``storage_backend=s3``."""
    log_level: str = Field(default="INFO", validation_alias=_names("log_level", "LOG_LEVEL"))
    """How much is logged: DEBUG, INFO, WARNING or ERROR."""

    sandbox: str = "auto"
    """Where trials run: ``auto``, ``oci``, ``docker``, ``harbor:<environment>`` or ``pkg.mod:Class``."""
    concurrency: int = Field(default=0, ge=0)
    """Trials one worker process holds at once; 0 means four for each core."""
    lease_sec: float = Field(default=30.0, gt=0)
    """How long a worker may stay silent before its trials are given to another."""
    heartbeat_sec: float = Field(default=5.0, gt=0)
    """How often a worker renews its leases."""
    reap_sec: float = Field(default=10.0, gt=0)
    """How often lost trials and sandbox leftovers are looked for."""
    trial_limit_sec: float = Field(default=86400.0, gt=0)
    """Limit of a whole trial, over the task's own limits; a job may set a shorter one."""
    default_cpus: float = Field(default=1.0, gt=0)
    """CPUs of a sandbox whose task says nothing."""
    default_memory_mb: int = Field(default=2048, gt=0)
    """Memory of a sandbox whose task says nothing."""
    default_pids: int = Field(default=2048, gt=0)
    """Processes and threads that one sandbox may have at once."""
    network_mode: str = Field(default="bridge", validation_alias=_names("network_mode", "CONTAINER_NETWORK_MODE"))
    """Network of tasks that say nothing: ``bridge`` (public), ``none``, or ``host`` where it is allowed."""
    allow_host_network: bool = False
    """Lets ``network_mode=host`` take effect. Sandboxes then share the machine's network."""
    allow_privileged: bool = False
    """Lets tasks have the elevated privileges they ask for; each such trial is marked ``privileged``."""
    allow_private_network: bool = False
    """Lets sandboxes reach private addresses besides public ones."""
    private_destinations: str = ""
    """Private addresses and ranges that sandboxes may reach all the same: ``10.1.2.3, 10.4.0.0/16``."""
    docker_registry: str = Field(default="", validation_alias=_names("docker_registry", "DOCKER_REGISTRY"))
    """Private repository that ``docker_image`` entries are mapped to first: ``<this>:<task>-<version>``."""
    default_registry: str = ""
    """Repository asked for tasks without ``docker_image``: ``<this>:<task>``."""
    pull_if_not_exists: bool = Field(default=True, validation_alias=_names("pull_if_not_exists", "PULL_IF_NOT_EXISTS"))
    """Whether an image that is not here may be pulled."""
    bootstrap_bases: bool = True
    """Whether ``debian:*`` bases may be made from the package mirror where no registry answers."""
    debian_mirror: str = ""
    """Package mirror for bootstrapped bases; empty for the one this machine uses."""
    extra_ca_file: Path | None = None
    """A CA bundle that image builds and sandboxes trust besides their own (for networks with an inspecting proxy)."""
    image_registries: str = ""
    """Registries of yours besides those of ``docker_registry`` and ``default_registry``: ``registry.example.org,
    10.1.2.3:5000``. Only yours get this machine's credentials, and only yours may be at a private address."""
    allow_host_network_builds: bool = False
    """Lets image builds use the machine's own network where they cannot have one of their own, or where a proxy is set.
    Builds then reach every service of this machine. Without it such a build has no network."""
    max_build_sec: float = Field(default=3600.0, gt=0)
    """Longest time that the build of one image may take, whatever its task asks for."""
    max_build_memory_mb: int = Field(default=8192, gt=0)
    """Memory that the build of one image may use."""
    max_build_cpus: float = Field(default=0.0, ge=0)
    """Processors that the build of one image may use; 0 means all of them."""
    max_build_pids: int = Field(default=4096, gt=0)
    """Processes and threads that the build of one image may have at once (``oci``)."""
    max_build_disk_mb: int = Field(default=20480, ge=256)
    """Disk that the build of one image may fill (``oci``)."""
    image_low_water_gb: float = Field(default=5.0, ge=0)
    """Free disk below which the least recently used images are pruned."""
    disk_low_water_mb: int = Field(default=512, ge=0)
    """Free disk in ``home`` below which nothing new is begun: no trial is claimed, no upload taken."""
    docker_host: str = Field(default="", validation_alias=_names("docker_host", "DOCKER_HOST"))
    """Address of the container engine for the ``docker`` sandbox; empty for the usual socket."""
    oci_runtime: str = ""
    """Container runtime of the ``oci`` sandbox: ``crun``, ``runc`` or a path to one; empty for the first that works."""

    max_memory_mb: int = Field(default=0, ge=0)
    """Most memory that a task may ask for; 0 for no ceiling. More is refused when a job is submitted."""
    max_cpus: float = Field(default=0.0, ge=0)
    """Most processors that a task may ask for; 0 for no ceiling."""
    max_storage_mb: int = Field(default=0, ge=0)
    """Most storage that a task may ask for; 0 for no ceiling."""
    max_trial_sec: float = Field(default=0.0, ge=0)
    """Most time for the agent, the tests and the build of a task together, a job's multiplier included, and for what a
    job asks for a whole trial; 0 leaves the task's limits to ``trial_limit_sec``, which always holds."""
    max_trials_per_job: int = Field(default=100_000, ge=1)
    """Most trials of one job: tasks × agents × attempts."""
    max_attempts: int = Field(default=1000, ge=1)
    """Most attempts at each task of one job."""
    allowed_sandboxes: str = ""
    """Sandboxes besides ``oci`` and ``docker`` that callers of the service may choose: ``harbor:docker, harbor:modal``.
    Those are outside of our isolation. Tasks of several services need ``harbor:docker``."""
    allowed_agents: str = ""
    """Agents of your own that callers of the service may name: ``pkg.mod:Class, …``. Workers import them."""
    allow_keys_in_sandbox: bool = False
    """Lets agents that run inside a sandbox have this installation's provider keys for jobs of the service. Whatever
    runs in there can read them. Keys that come with a job, and `seatrial run`, need no such permission."""
    max_kept_files: int = Field(default=10_000, gt=0)
    """Files that are kept of one try at most; the result says what was left out."""
    max_kept_mb: int = Field(default=1024, gt=0)
    """Megabytes that are kept of one try at most; the result says what was left out."""
    max_kept_depth: int = Field(default=64, gt=0)
    """How deep the folders may be nested that are kept of a try."""
    blobs_patience_sec: float = Field(default=120.0, ge=0)
    """How long a place for files that does not answer is waited for before a result is recorded without its files."""

    openrouter_api_key: str = Field(
        default="", repr=False, validation_alias=_names("openrouter_api_key", "OPENROUTER_API_KEY")
    )
    """Key for ``openrouter/…`` models."""
    model_patience_sec: float = Field(default=600.0, gt=0)
    """How long a model's service may keep failing (rate limits, outages) before a trial ends as an LLM error."""
    tb2_dir: Path | None = Field(default=None, validation_alias=_names("tb2_dir", "TB2_DIR"))
    """A folder of tasks served by name."""
    host: str = "127.0.0.1"
    """Address that ``seatrial up`` listens on. Beyond loopback it needs tokens, or ``auth=none``."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port that ``seatrial up`` listens on."""
    auth: Literal["auto", "token", "none"] = "auto"
    """``token`` asks everyone for one; ``none`` asks nobody, wherever it listens; ``auto`` asks beyond loopback."""
    secret_key: str = Field(default="", repr=False)
    """Seals stored provider keys; made in ``home`` on the first start where it is empty."""
    allowed_hosts: str = ""
    """Names besides the address itself that clients may use in the Host header: ``seatrial.example.org, runner``."""
    cors_origins: str = Field(default="", validation_alias=_names("cors_origins", "CORS_ORIGINS"))
    """Web origins besides our own whose pages may call the API: ``https://a.example, https://b.example``."""
    model_url_allowlist: str = ""
    """Model addresses that callers of an open server may name: ``https://models.example, 10.1.2.3:8000``."""
    model_providers: str = ""
    """Providers besides the usual ones that callers of an open server may use without an address: ``ollama, bedrock``.
    Such a provider is reached at this machine, or with its credentials."""
    upload_limit_mb: int = Field(default=256, gt=0)
    """Largest upload that is taken in."""
    slow_client_sec: float = Field(default=30.0, gt=0)
    """How long a client may send nothing in the middle of a request before it is cut."""
    waiting_limit: int = Field(default=32, gt=0, validation_alias=_names("waiting_limit", "THREAD_POOL_MAX_WORKERS"))
    """AgentCompass requests that run at once; further ones wait their turn."""
    keep_alive_sec: int = Field(default=65, gt=0, validation_alias=_names("keep_alive_sec", "TIMEOUT_KEEP_ALIVE"))
    """How long an idle connection is kept open."""
    log_format: Literal["text", "json"] = "text"
    """How the service and its workers write their logs."""
    server: str = ""
    """Address of a Seatrial service that the command line talks to, instead of working here."""
    server_token: str = Field(default="", repr=False)
    """Token for ``server``."""
    registry: str = ""
    """Harbor registry file (a path or URL) that ``-d name@version`` is looked up in after the local datasets, and that
    the API imports from."""
    archive_limit_mb: int = Field(default=512, gt=0)
    """Unpacked size above which an uploaded archive is refused."""

    _given_names: dict[str, str] = PrivateAttr(default_factory=dict)
    """Provider keys and addresses that ``.env`` holds. There are too many providers for a field each."""

    @model_validator(mode="wrap")
    @classmethod
    def _keep_provider_names(cls, given: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        """Of ``.env`` nothing would be left but what fields are made of."""
        settings = build(given)
        named = given.items() if isinstance(given, dict) else ()
        settings._given_names = {name.upper(): value for name, value in named if _is_provider_name(name.upper(), value)}
        return settings

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def worker_concurrency(self) -> int:
        return self.concurrency or 4 * (os.cpu_count() or 1)

    @property
    def store_url(self) -> str:
        """SQLAlchemy's address of the store."""
        if not self.database_url:
            return f"sqlite:///{self.home / 'seatrial.db'}"
        scheme, _, rest = self.database_url.partition("://")
        return f"postgresql+asyncpg://{rest}" if scheme in ("postgres", "postgresql") else self.database_url

    @property
    def files_url(self) -> str:
        """Where files are kept; empty for the folder in ``home``."""
        if self.blobs_url or self.storage_backend == "local":
            return self.blobs_url
        return f"s3://{self.s3_bucket_name}"

    @property
    def tasks_dir(self) -> Path:
        return self.home / "tasks"

    @property
    def blobs_dir(self) -> Path:
        return self.home / "blobs"

    @property
    def work_dir(self) -> Path:
        """Directories of attempts that run at the moment."""
        return self.home / "work"

    @cached_property
    def provider_environment(self) -> dict[str, str]:
        """Provider keys and addresses in the environment or ``.env``, by their usual names. Handed to model calls
        only."""
        return {
            **self._given_names,
            **{name: value for name, value in os.environ.items() if _is_provider_name(name, value)},
        }


_TOOL_NAMES = (
    "PATH",
    "LANG",
    "REGISTRY_AUTH_FILE",
    "DOCKER_CONFIG",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_PROXY_NAMES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def tool_environment() -> dict[str, str]:
    """What tools such as buildah and debootstrap may see of our environment; no key of any provider is in it."""
    kept = {name: os.environ[name] for name in (*_TOOL_NAMES, *_PROXY_NAMES) if os.environ.get(name)}
    path = f"{kept.get('PATH', os.defpath)}:/usr/sbin:/sbin"  # where debootstrap is
    return {"LANG": "C.UTF-8", "HOME": str(Path.home()), **kept, "PATH": path}
