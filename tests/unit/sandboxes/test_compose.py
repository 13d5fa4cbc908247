"""A task's compose file: what is refused and why, what is accepted, and what becomes of one service."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.sandboxes.compose import ComposeRefused, read_compose

TERMINAL_BENCH_1 = """
services:
  client:
    build:
      dockerfile: Dockerfile
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
      - ${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
"""

# Each breaks a rule of its own; the second text is its benign twin.
ESCAPES = {
    "privileged": ("privileged: true", "privileged: false"),
    "privileged as text": ("privileged: 'yes'", "privileged: 'no'"),
    "host mount": ("volumes: ['/:/host']", "volumes: ['data:/host']"),
    "host mount, long form": (
        "volumes: [{type: bind, source: /etc, target: /x}]",
        "volumes: [{type: volume, source: data, target: /x}]",
    ),
    "container socket": ("volumes: ['/var/run/docker.sock:/var/run/docker.sock']", "volumes: ['/var/run']"),
    "mount above the task": ("volumes: ['../../secrets:/x:ro']", "volumes: ['./data:/x:ro']"),
    "mount through a link": ("volumes: ['./way-out/etc:/x:ro']", "volumes: ['./data:/x:ro']"),
    "home of the worker": ("volumes: ['~/.ssh:/x:ro']", "volumes: ['./data:/x:ro']"),
    "writable task": ("volumes: ['./data:/x']", "volumes: ['./data:/x:ro']"),
    "host processes": ("pid: host", "init: true"),
    "host network": ("network_mode: host", "network_mode: none"),
    "network of a stranger": ("network_mode: 'container:victim'", "network_mode: 'service:other'"),
    "host memory": ("ipc: host", "shm_size: 64m"),
    "host names": ("uts: host", "hostname: box"),
    "capabilities": ("cap_add: [SYS_ADMIN]", "user: root"),
    "devices": ("devices: ['/dev/kmsg:/dev/kmsg']", "tmpfs: ['/scratch:size=10m']"),
    "device rules": ("device_cgroup_rules: ['a *:* rwm']", "ulimits: {nofile: 1024}"),
    "no seccomp": ("security_opt: ['seccomp:unconfined']", "read_only: true"),
    "volumes of a stranger": ("volumes_from: ['container:victim']", "volumes: ['data:/x']"),
    "another file": ("extends: {file: ../../other.yaml, service: x}", "depends_on: [other]"),
    "variables from outside": ("env_file: ../../.env", "env_file: inside.env"),
    "variables of the worker": ("environment: ['X=${AWS_SECRET_ACCESS_KEY}']", "environment: ['X=$${NOT_A_VARIABLE}']"),
    "variables of the worker, by default": ("environment: ['X=${HOME:-none}']", "environment: ['X=none']"),
    "variables of the worker, inside a default": (
        "environment: ['X=${TEST_DIR:-${AWS_SECRET_ACCESS_KEY}}']",
        "environment: ['X=${TEST_DIR:-${CONTEXT_DIR}}']",
    ),
    "no variable": ("environment: ['X=${1}']", "environment: ['X=$1']"),
    "host mount by default": (
        "volumes: ['${T_BENCH_TASK_LOGS_PATH:-/etc}:/x']",
        "volumes: ['${T_BENCH_TASK_LOGS_PATH}:/x']",
    ),
    "host mount by default, as a whole": (
        "volumes: ['${MEMORY:-/etc:/x}']",
        "volumes: ['data:${ENV_AGENT_LOGS_PATH}']",
    ),
    "context outside by default": ("build: '${CONTEXT_DIR:+../..}'", "build: '${CONTEXT_DIR}/data'"),
    "the machine by name, in pieces": (
        "extra_hosts: ['host:${TEST_DIR:-host-}gateway']",
        "extra_hosts: ['host:192.0.2.7']",
    ),
    "our labels, in pieces": ("labels: ['${TEST_DIR:-seat}rial.record=x']", "labels: ['mine=$TEST_DIR']"),
    "variables of the worker, by name": ("environment: [OPENAI_API_KEY]", "environment: ['OPENAI_API_KEY=']"),
    "context outside": ("build: ../..", "build: ."),
    "context through a link": ("build: ./way-out", "build: ./data"),
    "context from the network": ("build: 'https://example.com/repo.git'", "build: {context: ., args: {A: b}}"),
    "Dockerfile outside": ("build: {context: ., dockerfile: ../../Dockerfile}", "build: {dockerfile: Dockerfile}"),
    "build on the host's network": ("build: {context: ., network: host}", "build: {context: ., target: last}"),
    "build with the agent's keys": ("build: {context: ., ssh: [default]}", "build: {context: .}"),
    "secrets": ("secrets: [key]", "expose: [80]"),
    "configs": ("configs: [{source: file}]", "ports: ['80']"),
    "user namespace": ("userns_mode: host", "user: '1000'"),
    "parent cgroup": ("cgroup_parent: /", "mem_limit: 64m"),
    "sysctls": ("sysctls: {kernel.core_pattern: '|/x'}", "dns: [192.0.2.1]"),
    "runtime": ("runtime: other", "platform: linux/amd64"),
    "the machine by name": ("extra_hosts: ['host:host-gateway']", "extra_hosts: ['name:192.0.2.7']"),
    "GPU": (
        "deploy: {resources: {reservations: {devices: [{driver: nvidia, capabilities: [gpu]}]}}}",
        "deploy: {resources: {limits: {cpus: '1', memory: 64m}}}",
    ),
    "our labels": ("labels: {seatrial.record: x}", "labels: {mine: x}"),
}
TOP_LEVEL = {
    "included file": ("include: ['../../other.yaml']", "name: mine"),
    "secrets from files": ("secrets: {key: {file: /etc/shadow}}", "version: '3'"),
    "configs from files": ("configs: {key: {file: /etc/shadow}}", "x-note: anything"),
    "network of somebody else": ("networks: {net: {external: true}}", "networks: {net: {driver: bridge}}"),
    "the machine's network": ("networks: {net: {driver: host}}", "networks: {net: {internal: true}}"),
    "bound volume": (
        "volumes: {v: {driver_opts: {type: none, o: bind, device: /}}}",
        "volumes: {v: {}}",
    ),
    "volume of somebody else": ("volumes: {v: {external: true}}", "volumes: {v:}"),
}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    directory = tmp_path / "task" / "environment"
    (directory / "data").mkdir(parents=True)
    for name in ("Dockerfile", "data/Dockerfile"):
        (directory / name).write_text("FROM scratch\n")
    (directory / "inside.env").write_text("# comment\nINSIDE='yes'\n")
    (directory / "way-out").symlink_to("/")
    return directory


def _write(environment: Path, service: str = "", top: str = "", others: str = "other: {image: debian}") -> None:
    second = f"\n  {others}" if others else ""
    text = f"services:\n  main: {{image: debian{', ' if service else ''}{service}}}{second}\n{top}\n"
    if service:
        text = f"services:\n  main:\n    image: debian\n    {service}{second}\n{top}\n"
    (environment / "docker-compose.yaml").write_text(text)


@pytest.mark.parametrize("name", ESCAPES)
def test_escape_is_refused_and_its_twin_is_not(environment: Path, name: str) -> None:
    hostile, benign = ESCAPES[name]
    _write(environment, hostile)
    with pytest.raises(ComposeRefused) as refusal:
        read_compose(environment)
    assert refusal.value.reasons and "docker-compose.yaml" in str(refusal.value)
    _write(environment, benign)
    accepted = read_compose(environment)
    assert accepted is not None and accepted.services == ("main", "other")


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_top_level_escape_is_refused_and_its_twin_is_not(environment: Path, name: str) -> None:
    hostile, benign = TOP_LEVEL[name]
    _write(environment, top=hostile)
    with pytest.raises(ComposeRefused):
        read_compose(environment)
    _write(environment, top=benign)
    assert read_compose(environment) is not None


def test_what_a_task_can_set_itself_is_no_log_directory_for_compose(environment: Path) -> None:
    """Compose takes variables from the task's own ``.env``, except those that Harbor sets."""
    _write(environment, "volumes: ['${T_BENCH_TASK_LOGS_PATH}:/x']")
    with pytest.raises(ComposeRefused, match="path of the machine"):
        read_compose(environment, for_compose=True)
    _write(environment, "volumes: ['${HOST_AGENT_LOGS_PATH}:/x']")
    assert read_compose(environment, for_compose=True) is not None


def test_every_reason_is_told_at_once(environment: Path) -> None:
    _write(environment, "privileged: true\n    pid: host\n    cap_add: [ALL]")
    with pytest.raises(ComposeRefused) as refusal:
        read_compose(environment)
    assert len(refusal.value.reasons) == 3
    assert any("main.pid" in reason for reason in refusal.value.reasons)


@pytest.mark.parametrize(
    "text", ["[]", "services: []", "services: {a: 1}", "a: &a [*a]\nservices: {x: {command: &b [*b]}}", "{", "\x00"]
)
def test_what_is_no_compose_file_is_refused(environment: Path, text: str) -> None:
    (environment / "docker-compose.yaml").write_text(text)
    with pytest.raises(ComposeRefused):
        read_compose(environment)


def test_no_file(environment: Path) -> None:
    assert read_compose(environment) is None


def test_terminal_bench_1_becomes_one_container(environment: Path) -> None:
    (environment / "docker-compose.yaml").write_text(TERMINAL_BENCH_1)
    compose = read_compose(environment)
    assert compose is not None and compose.single is not None
    single = compose.single
    assert (single.name, single.image, single.context, single.dockerfile) == ("client", None, ".", "Dockerfile")
    assert single.command == ("sh", "-c", "sleep infinity")
    assert single.env == {"TEST_DIR": "/tests"}
    assert single.directories == ("/logs", "/agent-logs")


def test_everything_that_a_container_can_have(environment: Path) -> None:
    (environment / "docker-compose.yaml").write_text(
        """
services:
  main:
    build: {context: data, args: [A=1], target: last}
    command: sh -c "echo $$HOME"
    entrypoint: /start
    environment: {B: 2, C: "${T_BENCH_TEST_DIR}/x"}
    env_file: inside.env
    working_dir: /srv
    user: "1000:1000"
    hostname: box
    tmpfs: ["/scratch:size=10m"]
    volumes: ["cache:/var/cache/x", {type: tmpfs, target: /fast}]
    extra_hosts: ["a.example:192.0.2.7"]
    dns: 192.0.2.1
    shm_size: 128mb
    deploy: {resources: {limits: {cpus: "1.5", memory: 1.5g, pids: 99}}}
"""
    )
    compose = read_compose(environment)
    assert compose is not None and compose.single is not None
    single = compose.single
    assert (single.context, single.build_args, single.target) == ("data", {"A": "1"}, "last")
    assert (single.command, single.entrypoint) == (("sh", "-c", "echo $HOME"), ("/start",))
    assert single.env == {"INSIDE": "yes", "B": "2", "C": "/tests/x"}
    assert (single.workdir, single.user, single.hostname) == ("/srv", "1000:1000", "box")
    assert (single.tmpfs, single.directories) == (("/scratch:size=10m", "/fast"), ("/var/cache/x",))
    assert (single.extra_hosts, single.dns) == (("a.example:192.0.2.7",), ("192.0.2.1",))
    assert (single.cpus, single.memory_mb, single.pids, single.shm_mb) == (1.5, 1536, 99, 128)


def test_files_of_the_task_cannot_be_mounted_into_one_container(environment: Path) -> None:
    _write(environment, "volumes: ['./data:/x:ro']", others="")
    with pytest.raises(ComposeRefused, match="copy it in the Dockerfile"):
        read_compose(environment)
    _write(environment, "volumes: ['cache:/x']", others="")
    assert read_compose(environment) is not None


def test_privileges_that_the_operator_allowed(environment: Path) -> None:
    _write(environment, "privileged: true", others="")
    with pytest.raises(ComposeRefused):
        read_compose(environment)
    compose = read_compose(environment, allow_privileged=True)
    assert compose is not None and compose.single is not None and compose.single.privileged


def test_nothing_comes_from_this_machine_s_environment(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_BENCH_TEST_DIR", "stolen")
    monkeypatch.setenv("T_BENCH_TASK_DOCKER_NAME_PREFIX", "stolen")
    _write(environment, "environment: ['A=${T_BENCH_TEST_DIR}', 'B=${T_BENCH_TASK_DOCKER_NAME_PREFIX:-b}']", others="")
    compose = read_compose(environment)
    assert compose is not None and compose.single is not None
    assert compose.single.env == {"A": "/tests", "B": "b"}
