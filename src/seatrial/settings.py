"""The only reader of environment variables, ``.env`` and ``seatrial.toml``.

``SEATRIAL_*`` names win over the names that other systems use. Precedence: environment, ``.env``, ``seatrial.toml``,
default. Every field has a docstring and a line in ``docs/reference/settings.md``; a test compares them.
"""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AliasChoices, Field, ModelWrapValidatorHandler, PrivateAttr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from seatrial.domain.described import Described
from seatrial.domain.fleet.packing import Size
from seatrial.domain.model_calls.budget import LARGEST_CAP, LARGEST_CAP_USD, Cap
from seatrial.errors import SetupProblem
from seatrial.system.file_owner import is_of_service, owner_of

_PROVIDER_SUFFIXES = ("_API_KEY", "_API_BASE", "_BASE_URL", "HF_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


def _names(field: str, *compatibility_names: str) -> Any:
    """``SEATRIAL_<FIELD>`` first, then the names that users of another system already have in their ``.env``."""
    return AliasChoices(f"SEATRIAL_{field.upper()}", *compatibility_names)


def _is_provider_name(name: str, value: object) -> bool:
    known = name.endswith(_PROVIDER_SUFFIXES) and not name.startswith("SEATRIAL_")
    return known and isinstance(value, str) and value != ""


class Settings(Described, BaseSettings):
    """Configuration of this installation."""

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
    """Directory of this installation's data: database, task files, results."""
    cache: Path = Path.home() / ".cache" / "seatrial"
    """Directory of images. Several homes may share it, so that they do not build twice."""
    database_url: str = Field(default="", repr=False, validation_alias=_names("database_url", "DATABASE_URL"))
    """``postgresql://user:password@host/name``, or empty for SQLite in ``home``."""
    database_connections: int = Field(default=5, ge=2)
    """Maximum connections to PostgreSQL of the API process, and of each command."""
    worker_database_connections: int = Field(default=3, ge=2)
    """Maximum connections to PostgreSQL of each worker process. Without ``broker_url`` each process opens one more, for
    wake-ups."""
    broker_url: str = Field(
        default="", repr=False, validation_alias=_names("broker_url", "CELERY_BROKER_URL", "REDIS_URL")
    )
    """Redis for Celery, which wakes the workers of all machines: ``redis://user:password@host:6379/0``, or
    ``rediss://…`` with TLS. Empty: PostgreSQL wakes them, or a file in ``home``."""
    blobs_url: str = ""
    """``s3://bucket/prefix`` or another object store; empty for files in ``home``."""
    storage_backend: Literal["local", "s3"] = Field(
        default="local", validation_alias=_names("storage_backend", "STORAGE_BACKEND")
    )
    """``s3`` stores files in ``s3_bucket_name`` if ``blobs_url`` is empty."""
    s3_bucket_name: str = Field(default="", validation_alias=_names("s3_bucket_name", "S3_BUCKET_NAME"))
    """Bucket for ``storage_backend=s3``."""
    s3_endpoint: str = Field(
        default="", validation_alias=_names("s3_endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    )
    """Address of an S3 server that is not AWS's: ``https://s3.example.org:9000``."""
    s3_region: str = Field(default="", validation_alias=_names("s3_region", "AWS_REGION", "AWS_DEFAULT_REGION"))
    """Region of the bucket; ``us-east-1`` if it is empty."""
    s3_path_style: bool = True
    """``https://server/bucket/key``; ``false`` for ``https://bucket.server/key``. AWS takes both."""
    s3_access_key_id: str = Field(default="", validation_alias=_names("s3_access_key_id", "AWS_ACCESS_KEY_ID"))
    """Key of the S3 account. Empty: the role of the task, pod or instance."""
    s3_secret_access_key: str = Field(
        default="", repr=False, validation_alias=_names("s3_secret_access_key", "AWS_SECRET_ACCESS_KEY")
    )
    """Secret of that key."""
    s3_session_token: str = Field(
        default="", repr=False, validation_alias=_names("s3_session_token", "AWS_SESSION_TOKEN")
    )
    """Session token of a temporary key."""
    s3_encryption: Literal["", "AES256", "aws:kms", "aws:kms:dsse"] = ""
    """Encryption that each upload asks the server for. Empty: the bucket's default, which AWS encrypts too."""
    s3_kms_key_id: str = ""
    """The key for ``s3_encryption=aws:kms``. Empty: the account's default key."""
    blobs_timeout_sec: float = Field(default=60.0, gt=0)
    """Seconds for one request to the object store. A request carries at most a few megabytes."""
    blobs_ca_file: Path | None = None
    """A CA bundle for the object store's certificate, in addition to the machine's."""
    log_level: str = Field(default="INFO", validation_alias=_names("log_level", "LOG_LEVEL"))
    """Log level: DEBUG, INFO, WARNING or ERROR."""

    sandbox: str = "auto"
    """Default sandbox: ``auto``, ``oci``, ``docker``, ``harbor:<environment>`` or ``pkg.mod:Class``."""
    concurrency: int = Field(default=0, ge=0)
    """Trials at once per worker process: a number, or ``auto`` (also 0) for as many as fit into the memory and
    processors of the machine, by what their tasks declare."""
    memory_overcommit: float = Field(default=1.0, gt=0, le=100)
    """With ``concurrency=auto``: trials may declare nine tenths of the memory times this together."""
    cpu_overcommit: float = Field(default=8.0, gt=0, le=1000)
    """With ``concurrency=auto``: trials may declare the processors times this together. Most of them wait for a
    model."""
    memory_low_water_percent: float = Field(default=5.0, ge=0, le=90)
    """Available memory below which workers claim no trials; 0 switches this off."""
    largest_machine: str = ""
    """The largest machine that workers may get, such as ``16cpu,64gb``. A job with a task that fits neither there nor
    on a worker that is alive is refused. Without it, and without workers, every size is accepted."""
    lease_sec: float = Field(default=30.0, gt=0)
    """Seconds without a heartbeat after which a worker's trials go to another worker."""
    heartbeat_sec: float = Field(default=5.0, gt=0)
    """Seconds between heartbeats of a worker."""
    reap_sec: float = Field(default=10.0, gt=0)
    """Seconds between searches for lost trials and leftovers of sandboxes."""
    drain_seconds: float = Field(default=0.0, ge=0)
    """Seconds that a worker's running trials have after a signal to stop; then they are given back to the queue. 0
    means until they end. Set it below the time after which the platform kills the process."""
    leave_when_idle_sec: float = Field(default=0.0, ge=0)
    """Seconds without a trial after which `seatrial worker` leaves if ``minimum_workers`` others stay; 0 means never.
    """
    minimum_workers: int = Field(default=1, ge=0)
    """Live workers that stay even if they are idle."""
    on_leave: str = ""
    """A command to run after the last worker of a machine has left because it was idle, such as
    ``/usr/local/bin/end-this-machine``. No shell interprets it."""
    platform: Literal["none", "ec2", "ecs"] = "none"
    """What may end worker machines by its own choice. ``ec2``: an Auto Scaling group; workers protect their instance
    while they hold trials, drain on its notices, and end it after an idle leave. ``ecs``: an ECS service; workers
    protect their task while they hold trials."""
    ec2_metadata_url: str = "http://169.254.169.254"
    """Address of the instance metadata service, for ``platform=ec2``."""
    ec2_lifecycle_hook: str = ""
    """Name of the group's termination hook, for ``platform=ec2``. A worker that has drained completes it."""
    ecs_agent_uri: str = Field(default="", validation_alias=_names("ecs_agent_uri", "ECS_AGENT_URI"))
    """Address of the ECS agent, for ``platform=ecs``. ECS sets it in each container."""
    aws_region: str = Field(default="", validation_alias=_names("aws_region", "AWS_REGION"))
    """Region of CloudWatch. Credentials come from where all AWS tools look for them."""
    cloudwatch_namespace: str = ""
    """Publishes the signals of autoscalers to CloudWatch under this namespace; empty for not at all."""
    cloudwatch_sec: float = Field(default=60.0, gt=0)
    """Seconds between two publications."""
    machine_memory_mb: int = Field(default=0, ge=0)
    """Memory of one worker machine, for the signals of autoscalers; 0 means what live workers report."""
    machine_cpus: float = Field(default=0.0, ge=0)
    """Processors of one worker machine, for the same; 0 means what live workers report."""
    trial_limit_sec: float = Field(default=86400.0, gt=0)
    """Time limit of a whole trial, in addition to the task's own limits. A job may set a shorter one."""
    default_cpus: float = Field(default=1.0, gt=0)
    """CPUs of a sandbox if the task sets none."""
    default_memory_mb: int = Field(default=2048, gt=0)
    """Memory of a sandbox if the task sets none."""
    default_pids: int = Field(default=2048, gt=0)
    """Maximum processes and threads of one sandbox."""
    network_mode: str = Field(default="bridge", validation_alias=_names("network_mode", "CONTAINER_NETWORK_MODE"))
    """Network of tasks that set none: ``bridge`` (public), ``none``, or ``host`` if it is allowed."""
    allow_host_network: bool = False
    """Allows ``network_mode=host``. Sandboxes then share the machine's network."""
    allow_privileged: bool = False
    """Gives tasks the elevated privileges that they request; each such trial is marked ``privileged``."""
    allow_private_network: bool = False
    """Allows sandboxes to reach private addresses, not only public ones."""
    private_destinations: str = ""
    """Private addresses and ranges that sandboxes may always reach: ``10.1.2.3, 10.4.0.0/16``."""
    docker_registry: str = Field(default="", validation_alias=_names("docker_registry", "DOCKER_REGISTRY"))
    """Private repository to try first for ``docker_image`` entries: ``<this>:<task>-<version>``."""
    default_registry: str = ""
    """Repository to try for tasks without ``docker_image``: ``<this>:<task>``."""
    pull_if_not_exists: bool = Field(default=True, validation_alias=_names("pull_if_not_exists", "PULL_IF_NOT_EXISTS"))
    """Whether missing images may be pulled."""
    bootstrap_bases: bool = True
    """Whether ``debian:*`` base images may be created from the package mirror if no registry answers."""
    debian_mirror: str = ""
    """Package mirror for these base images. Default: the mirror that this machine uses."""
    extra_ca_file: Path | None = None
    """A CA bundle that image builds and sandboxes also trust (for networks with an inspecting proxy)."""
    image_registries: str = ""
    """Your own registries, in addition to ``docker_registry`` and ``default_registry``: ``registry.example.org,
    10.1.2.3:5000``. Only these get this machine's credentials, and only these may have a private address."""
    allow_host_network_builds: bool = False
    """Allows image builds to use the machine's network if they cannot have their own, or if a proxy is set. Builds then
    reach every service of this machine. Otherwise such a build has no network."""
    max_build_sec: float = Field(default=3600.0, gt=0)
    """Maximum time of an image build, whatever its task requests."""
    max_build_memory_mb: int = Field(default=8192, gt=0)
    """Maximum memory of an image build."""
    max_build_cpus: float = Field(default=0.0, ge=0)
    """Maximum CPUs of an image build; 0 means all."""
    max_build_pids: int = Field(default=4096, gt=0)
    """Maximum processes and threads of an image build (``oci``)."""
    max_build_disk_mb: int = Field(default=20480, ge=256)
    """Maximum disk space of an image build (``oci``)."""
    kits_gb: float = Field(default=20.0, ge=0)
    """Disk space for agent kits, in GB. Beyond it the least recently used are removed. 0: no limit."""
    image_low_water_gb: float = Field(default=5.0, ge=0)
    """Free disk space below which the least recently used images are pruned."""
    disk_low_water_mb: int = Field(default=512, ge=0)
    """Free disk space in ``home`` below which nothing new starts: no trial is claimed, no upload accepted."""
    docker_host: str = Field(default="", validation_alias=_names("docker_host", "DOCKER_HOST"))
    """Address of the container engine for the ``docker`` sandbox. Default: the usual socket."""
    oci_runtime: str = ""
    """Container runtime of the ``oci`` sandbox: ``crun``, ``runc``, ``runsc`` (gVisor) or a path. Default: the first of
    crun and runc that works."""

    max_memory_mb: int = Field(default=0, ge=0)
    """Maximum memory that a task may request; 0 for no limit. A job with more is refused."""
    max_cpus: float = Field(default=0.0, ge=0)
    """Maximum CPUs that a task may request; 0 for no limit."""
    max_storage_mb: int = Field(default=0, ge=0)
    """Maximum storage that a task may request; 0 for no limit."""
    max_trial_sec: float = Field(default=0.0, ge=0)
    """Maximum time of a task's agent, tests and build together, including the job's multiplier, and of a job's limit
    for a whole trial; 0 for no limit except ``trial_limit_sec``, which always applies."""
    max_trials_per_job: int = Field(default=100_000, ge=1)
    """Maximum trials of one job: tasks × agents × attempts."""
    max_attempts: int = Field(default=1000, ge=1)
    """Maximum attempts per task of one job."""
    allowed_sandboxes: str = ""
    """Sandboxes besides ``oci`` and ``docker`` that callers of the service may choose: ``harbor:docker,
    harbor:modal``. Seatrial does not isolate those. Tasks with several services need ``harbor:docker``."""
    allowed_agents: str = ""
    """Your own agents that callers of the service may use: ``pkg.mod:Class, …``. Workers import them."""
    allow_keys_in_sandbox: bool = False
    """Gives this installation's provider keys to agents inside a sandbox where the gate for model calls has no door:
    one that is not ours, a container engine elsewhere, or a provider whose format it does not speak. All code in the
    sandbox can read them, and the trial is marked ``key_in_sandbox``. Keys sent with a job do not need this."""
    max_kept_files: int = Field(default=10_000, gt=0)
    """Maximum files stored per try; the result says what was left out."""
    max_kept_mb: int = Field(default=1024, gt=0)
    """Maximum megabytes stored per try; the result says what was left out."""
    max_kept_depth: int = Field(default=64, gt=0)
    """Maximum depth of the folders stored of a try."""
    final_states_mb: int = Field(default=20_000, ge=0)
    """Megabytes of disk for what agents did, kept from an agent's end until its result is recorded, so that a worker
    that is lost while it grades costs no second run of the agent; 0 keeps nothing."""
    blobs_patience_sec: float = Field(default=120.0, ge=0)
    """Seconds to wait for an unavailable blob store before a result is recorded without its files."""

    openrouter_api_key: str = Field(
        default="", repr=False, validation_alias=_names("openrouter_api_key", "OPENROUTER_API_KEY")
    )
    """Key for ``openrouter/…`` models."""
    model_patience_sec: float = Field(default=600.0, gt=0)
    """Seconds that a model's service may keep failing (rate limits, outages) before the trial ends as an LLM error."""
    day_budget_usd: float = Field(default=0.0, ge=0, le=LARGEST_CAP_USD, allow_inf_nan=False)
    """The most that all jobs together may spend on models in one day (UTC), in dollars; 0 for no cap. Jobs with a model
    that has no known price are then refused. Jobs whose caller chose the model's address are not counted."""
    day_budget_tokens: int = Field(default=0, ge=0, le=LARGEST_CAP)
    """The same in tokens, input and output together."""
    day_budget_calls: int = Field(default=0, ge=0, le=LARGEST_CAP)
    """The same in calls to models."""
    model_prices_file: Path | None = None
    """Your own prices of models: a JSON or TOML file with LiteLLM's names of models and of prices, such as
    ``{"hosted_vllm/mine": {"input_cost_per_token": 1e-7, "output_cost_per_token": 4e-7}}``. They win over LiteLLM's
    list. Workers read it when they start, the API with its first job."""
    provider_pace: bool = True
    """Learns from rate limits how many calls a provider takes at once, over all workers, and lets calls wait for their
    turn."""
    pace_stops_clock: bool = True
    """Whether an agent's time limit does not run while all of its open calls wait for a provider's limit, or for room
    in a budget."""
    tb2_dir: Path | None = Field(default=None, validation_alias=_names("tb2_dir", "TB2_DIR"))
    """A folder of tasks that callers may run by name."""
    host: str = "127.0.0.1"
    """Address that ``seatrial up`` listens on. Other addresses than loopback need tokens, or ``auth=none``."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port that ``seatrial up`` listens on."""
    api_user: str = ""
    """The account of the API's process if `seatrial up` is started by root: a name or a number. ``home`` is given to
    it. Default: the owner of ``home`` if that is not root, else the account ``seatrial``, else the number 60999, which
    needs no account. ``root`` keeps root. The service does not start if this is set and impossible."""
    auth: Literal["auto", "token", "none"] = "auto"
    """``token`` always requires a token; ``none`` never does; ``auto`` requires one unless it listens on loopback."""
    secret_key: str = Field(default="", repr=False)
    """Encrypts stored provider keys. Default: a key created in ``home`` on the first start."""
    allowed_hosts: str = ""
    """Further host names that clients may use in the Host header: ``seatrial.example.org, runner``."""
    cors_origins: str = Field(default="", validation_alias=_names("cors_origins", "CORS_ORIGINS"))
    """Further web origins whose pages may call the API: ``https://a.example, https://b.example``."""
    model_url_allowlist: str = ""
    """Model addresses that callers of an open server may use: ``https://models.example, 10.1.2.3:8000``."""
    model_providers: str = ""
    """Further providers that callers of an open server may use without an address: ``ollama, bedrock``. Such a
    provider runs on this machine, or uses its credentials."""
    upload_limit_mb: int = Field(default=256, gt=0)
    """Maximum size of an upload."""
    slow_client_sec: float = Field(default=30.0, gt=0)
    """Seconds without data in the middle of a request after which the connection is cut."""
    waiting_limit: int = Field(default=32, gt=0, validation_alias=_names("waiting_limit", "THREAD_POOL_MAX_WORKERS"))
    """Maximum AgentCompass requests that run at once; further ones wait."""
    keep_alive_sec: int = Field(default=65, gt=0, validation_alias=_names("keep_alive_sec", "TIMEOUT_KEEP_ALIVE"))
    """Seconds that an idle connection stays open."""
    log_format: Literal["text", "json"] = "text"
    """Log format of the service and its workers."""
    server: str = ""
    """Address of a Seatrial service. The command line then uses it instead of this machine."""
    server_token: str = Field(default="", repr=False)
    """Token for ``server``."""
    registry: str = ""
    """Harbor registry file (a path or URL). ``-d name@version`` is looked up there after the local datasets, and the
    API imports from it."""
    archive_limit_mb: int = Field(default=512, gt=0)
    """Maximum unpacked size of an uploaded archive."""

    _given_names: dict[str, str] = PrivateAttr(default_factory=dict)
    """Provider keys and addresses from ``.env``. There are too many providers for a field each."""

    @model_validator(mode="wrap")
    @classmethod
    def _keep_provider_names(cls, given: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        """Pydantic would drop all names in ``.env`` that are not fields."""
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
        for name in (".env", "seatrial.toml"):
            if is_of_service(Path(name)):
                raise SetupProblem(
                    f"Root takes no settings from {Path(name).absolute()}, which belongs to the service's own account.",
                    fix="Start the command in another folder, or give the file to root.",
                )
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)

    @field_validator("concurrency", mode="before")
    @classmethod
    def _automatic(cls, value: object) -> object:
        return 0 if value == "auto" else value

    @field_validator("largest_machine")
    @classmethod
    def _readable(cls, value: str) -> str:
        if value:
            Size.parse(value)
        return value

    @property
    def room_dir(self) -> Path:
        """Where the worker processes of each machine write what they use."""
        return self._own_dir / "room"

    @property
    def day_cap(self) -> Cap:
        """The caps of ``day_budget_*``."""
        return Cap(
            dollars=self.day_budget_usd or None,
            tokens=self.day_budget_tokens or None,
            calls=self.day_budget_calls or None,
        )

    @property
    def store_url(self) -> str:
        """The store's SQLAlchemy URL."""
        if not self.database_url:
            return f"sqlite:///{self.home / 'seatrial.db'}"
        scheme, _, rest = self.database_url.partition("://")
        return f"postgresql+asyncpg://{rest}" if scheme in ("postgres", "postgresql") else self.database_url

    @property
    def files_url(self) -> str:
        """URL of the blob store; empty for the folder in ``home``."""
        if self.blobs_url or self.storage_backend == "local":
            return self.blobs_url
        return f"s3://{self.s3_bucket_name}"

    @property
    def tasks_dir(self) -> Path:
        """Unpacked tasks."""
        return self._own_dir / "tasks"

    @property
    def blobs_dir(self) -> Path:
        return self.home / "blobs"

    @property
    def work_dir(self) -> Path:
        """Directories of running tries."""
        return self._own_dir / "work"

    @property
    def _own_dir(self) -> Path:
        """Where this process keeps what no other account may write. That is not ``home`` if root works in the home of
        another account, as a worker beside an API without rights does."""
        if not self.home.is_dir() or owner_of(self.home) is None:
            return self.home
        return self.cache / "homes" / hashlib.sha256(os.fsencode(self.home.resolve())).hexdigest()[:16]

    @cached_property
    def provider_environment(self) -> dict[str, str]:
        """Provider keys and addresses from the environment or ``.env``, by their usual names. Used for model calls
        only."""
        return {
            **self._given_names,
            **{name: value for name, value in os.environ.items() if _is_provider_name(name, value)},
        }

    @property
    def provider_keys(self) -> dict[str, str]:
        """The same with the key for ``openrouter/…`` models."""
        own = {"OPENROUTER_API_KEY": self.openrouter_api_key} if self.openrouter_api_key else {}
        return {**self.provider_environment, **own}


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
    """The environment of tools such as buildah and debootstrap; contains no provider keys."""
    kept = {name: os.environ[name] for name in (*_TOOL_NAMES, *_PROXY_NAMES) if os.environ.get(name)}
    path = f"{kept.get('PATH', os.defpath)}:/usr/sbin:/sbin"  # location of debootstrap
    return {"LANG": "C.UTF-8", "HOME": str(Path.home()), **kept, "PATH": path}


_PACKAGE_NAMES = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_PACKAGE_PREFIXES = ("PIP_", "UV_", "npm_config_", "NPM_CONFIG_")


def package_environment() -> dict[str, str]:
    """The environment of pip, uv and npm: their own settings, certificates and proxies, and no provider keys."""
    kept = {name: os.environ[name] for name in (*_PACKAGE_NAMES, *_PROXY_NAMES) if os.environ.get(name)}
    own = {name: value for name, value in os.environ.items() if name.startswith(_PACKAGE_PREFIXES)}
    return {"LANG": "C.UTF-8", "HOME": str(Path.home()), "PATH": os.defpath, **kept, **own}
