"""A task's own description is hostile: task.toml, task.yaml and docker-compose.yaml, in both formats.

Whatever is in them, reading ends with a task or with its problems. Nothing of the host is read, and no number means
"unlimited" by accident.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.ports.tasks import Inspection
from tests.command_line import SAMPLES
from tests.properties import trying

HEAD = 'schema_version = "1.4"\n[task]\nname = "tests/x"\ndescription = "x"\n'
CLIENT = "services:\n  client:\n    build: .\n"
OTHER = "  other: {image: debian}\n"
QUICK = trying(60)


@pytest.fixture
def harbor(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "answer-file", tmp_path / "answer-file"))


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A task of the first Terminal-Bench."""
    return Path(shutil.copytree(SAMPLES / "mend-a-script", tmp_path / "mend-a-script"))


def read_toml(root: Path, text: str) -> Inspection:
    (root / "task.toml").write_text(text)
    return HarborTasks().inspect(root)


def read_first(root: Path, file: str, text: str) -> Inspection:
    """Also as a Harbor task, which is what runs."""
    (root / file).write_text(text)
    reader = TerminalBench1Tasks()
    found = reader.inspect(root)
    if found.task is not None:
        reader.prepare(root, root.parent / "prepared" / "task")
    return found


NUMBERS = {
    "agent time is not a number": "[agent]\ntimeout_sec = nan\n",
    "agent time without end": "[agent]\ntimeout_sec = inf\n",
    "negative agent time": "[agent]\ntimeout_sec = -5\n",
    "negative test time": "[verifier]\ntimeout_sec = -900000\n",
    "negative build time": "[environment]\nbuild_timeout_sec = -900000\n",
    "build time is not a number": "[environment]\nbuild_timeout_sec = nan\n",
    "negative memory": "[environment]\nmemory_mb = -1\n",
    "no memory": "[environment]\nmemory_mb = 0\n",
    "more memory than there is": f"[environment]\nmemory_mb = {'9' * 30}\n",
    "memory without end, as text": '[environment]\nmemory = "infG"\n',
    "memory of 5000 digits, as text": f'[environment]\nmemory = "{"9" * 5000}G"\n',
    "negative storage": "[environment]\nstorage_mb = -5\n",
    "negative processors": "[environment]\ncpus = -1\n",
    "negative GPUs": "[environment]\ngpus = -1\n",
    "5000 digits": f"[metadata]\na = {'9' * 5000}\n",
}
SHAPES = {
    "keys 20,000 deep": f"[metadata]\n{'.'.join(['a'] * 20_000)} = 1\n",
    "tables 20,000 deep": f"[{'.'.join(['metadata', *['a'] * 20_000])}]\nx = 1\n",
    "arrays 5,000 deep": f"[metadata]\na = {'[' * 5000}{']' * 5000}\n",
    "a key twice": "[metadata]\na = 1\na = 2\n",
    "NUL": '[metadata]\na = "\x00"\n',
    "NUL, escaped": '[metadata]\na = "\\u0000"\n',
}
OUTSIDE = {
    "a step": HEAD + '[[steps]]\nname = "../../../../etc"\n',
    "an artifact": 'artifacts = ["../../etc/passwd"]\n' + HEAD,
    "its name": HEAD.replace("tests/x", "tests/.."),
    "escapes in its name": HEAD.replace("tests/x", "tests/a\\u001b]0;x\\u0007"),
    "bidi in its name": HEAD.replace("tests/x", "tests/\\u202eabc"),
    "a formula as its name": HEAD.replace("tests/x", "tests/=1+1"),
    "an option as its name": HEAD.replace("tests/x", "tests/-rf"),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_a_number_of_a_task_is_one_that_can_be_kept(harbor: Path, what: str) -> None:
    found = read_toml(harbor, HEAD + NUMBERS[what])
    assert found.task is None and found.problems, what


@pytest.mark.parametrize("what", SHAPES)
def test_no_shape_of_a_task_toml_ends_the_reader(harbor: Path, what: str) -> None:
    assert read_toml(harbor, HEAD + SHAPES[what]).task is None


@pytest.mark.parametrize("what", OUTSIDE)
def test_no_name_in_a_task_toml_leads_out(harbor: Path, what: str) -> None:
    found = read_toml(harbor, OUTSIDE[what])
    assert found.task is None and any(problem.file == "task.toml" for problem in found.problems)


@pytest.mark.parametrize("file", ["task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile"])
def test_a_link_to_a_file_of_the_host_is_not_read(harbor: Path, tmp_path: Path, file: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("CANARY = 1\n")
    (harbor / file).unlink()
    (harbor / file).symlink_to(secret)
    found = HarborTasks().inspect(harbor)
    assert found.task is None and "CANARY" not in str(found)


@pytest.mark.parametrize("raw", [b"\xff\xfe", b'name = "\xc3\x28"\n', "a = 1".encode("utf-16")], ids=repr)
def test_what_is_no_text_is_a_problem(harbor: Path, raw: bytes) -> None:
    (harbor / "task.toml").write_bytes(raw)
    assert HarborTasks().inspect(harbor).task is None


def test_an_honest_task_toml_is_read(harbor: Path) -> None:
    honest = "[agent]\ntimeout_sec = 60\n[environment]\nmemory_mb = 512\ncpus = 1\nstorage_mb = 100\ngpus = 0\n"
    found = read_toml(harbor, HEAD + honest + "[metadata]\na.b.c = [[1], [2]]\n")
    assert found.task is not None and found.task.agent_timeout_sec == 60, found.problems


DOCKERFILES = {
    "above the task": "../../../../../../../../../../etc/passwd",
    "absolute": "/etc/passwd",
    "above, after a detour": "app/../../../../../../../../../../etc/passwd",
}


@pytest.mark.parametrize("what", DOCKERFILES)
@pytest.mark.parametrize("service", ["client", "other"])
def test_a_dockerfile_is_a_file_of_the_task(first: Path, service: str, what: str) -> None:
    """It is copied into the environment, so it would have been read by the build, whose log its author sees."""
    build = f"{{context: ., dockerfile: {DOCKERFILES[what]}}}"
    text = f"services:\n  client:\n    build: {build if service == 'client' else '.'}\n"
    if service == "other":
        text += f"  other:\n    build: {build}\n"
    found = read_first(first, "docker-compose.yaml", text)
    assert found.task is None and "outside the task" in str(found.problems)


CONTEXTS = {"above": "..", "absolute": "/etc", "above, after a detour": "app/../.."}


@pytest.mark.parametrize("what", CONTEXTS)
@pytest.mark.parametrize("service", ["client", "other"])
def test_a_build_context_is_a_folder_of_the_task(first: Path, service: str, what: str) -> None:
    text = f"services:\n  client: {{build: {CONTEXTS[what] if service == 'client' else '.'}}}\n"
    if service == "other":
        text += f"  other: {{build: {CONTEXTS[what]}}}\n"
    found = read_first(first, "docker-compose.yaml", text)
    assert found.task is None and "outside the task" in str(found.problems)


def test_a_dockerfile_of_the_task_may_have_any_place_in_it(first: Path) -> None:
    (first / "app" / "Other").write_text("FROM debian:bookworm-slim\n")
    text = "services:\n  client:\n    build: {context: ., dockerfile: app/Other}\n"
    assert read_first(first, "docker-compose.yaml", text).task is not None
    assert (first.parent / "prepared" / "task" / "environment" / "Dockerfile").read_text().startswith("FROM debian")


COMPOSE = {
    "processors without end": CLIENT + "    cpus: .inf\n",
    "memory with two points": CLIENT + "    mem_limit: 1.2.3m\n",
    "memory of 400 digits": CLIENT + f"    mem_limit: {'9' * 400}t\n",
    "a number for variables": CLIENT + "    environment: 5\n",
    "a number for networks": CLIENT + "    networks: 5\n" + OTHER,
    "a word for a network": CLIENT + "    networks: {a: b}\n" + OTHER,
    "a mapping for a network's name": CLIENT + "    networks: [{a: b}]\n" + OTHER,
    "NUL in a variable": CLIENT + '    environment: {A: "x\\0y"}\n',
    "NUL in the image": 'services:\n  client:\n    image: "a\\0b"\n',
    "a tag that calls": CLIENT + "    x: !!python/object/apply:os.system ['true']\n",
}


@pytest.mark.parametrize("what", COMPOSE)
def test_a_strange_compose_file_is_a_problem(first: Path, what: str) -> None:
    (first / "Dockerfile").unlink() if "image" in what else None
    found = read_first(first, "docker-compose.yaml", COMPOSE[what])
    assert found.task is None and found.problems


def test_an_honest_compose_file_is_read(first: Path) -> None:
    text = CLIENT + "    cpus: 1.5\n    mem_limit: 1.5g\n    environment: [A=b]\n    networks: [inner]\n" + OTHER
    found = read_first(first, "docker-compose.yaml", text + "networks: {inner: {}}\n")
    assert found.task is not None and found.task.resources.memory_mb == 1536, found.problems


def laughs() -> str:
    levels = [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(8)]
    return "instruction: x\na: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(levels)


FIRST = {
    "aliases that grow": laughs(),
    "an alias of itself": "instruction: x\nenv_name: &a [*a]\n",
    "lists 5,000 deep": f"instruction: x\nenv_name: {'[' * 5000}{']' * 5000}\n",
    "a tag that calls": "instruction: !!python/object/apply:os.system ['true']\n",
    "half a character": 'instruction: "\\ud800"\n',
    "NUL": 'instruction: "a\\0b"\n',
    "time without end": "instruction: x\nmax_agent_timeout_sec: .inf\n",
    "time of 5000 digits": f"instruction: x\nmax_agent_timeout_sec: {'9' * 5000}\n",
    "negative time": "instruction: x\nmax_test_timeout_sec: -1\n",
    "a date that is none": "instruction: 2020-13-45\n",
    "a key that is a list": "? [a]\n: b\ninstruction: x\n",
    "two documents": "instruction: x\n---\na: b\n",
}


@pytest.mark.parametrize("what", FIRST)
def test_a_strange_task_yaml_is_a_problem(first: Path, what: str) -> None:
    found = read_first(first, "task.yaml", FIRST[what])
    assert found.task is None and found.problems


def test_an_honest_task_yaml_is_read(first: Path) -> None:
    text = "instruction: &words Do it.\ncategory: *words\nmax_agent_timeout_sec: 60\n"
    found = read_first(first, "task.yaml", text)
    assert found.task is not None and found.task.agent_timeout_sec == 60, found.problems


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(["", "x", "..", "/etc", "../x", "${HOME}", "1.2.3m", "-1", "inf", "\x00", "\x1b[31m", "\u202e"]),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "gpu", "context", "name"]), inner, max_size=3),
    ),
    max_leaves=6,
)
_SERVICE_KEYS = [
    "build",
    "image",
    "environment",
    "working_dir",
    "cpus",
    "mem_limit",
    "deploy",
    "volumes",
    "networks",
    "command",
    "depends_on",
]
_YAML_KEYS = [
    "instruction",
    "descriptions",
    "tags",
    "difficulty",
    "category",
    "max_agent_timeout_sec",
    "author_name",
    "parser_name",
]
_TOML_KEYS = {
    "environment": [
        "cpus",
        "memory_mb",
        "memory",
        "storage",
        "build_timeout_sec",
        "docker_image",
        "workdir",
        "env",
        "network_mode",
        "os",
    ],
    "agent": ["timeout_sec", "user", "network_mode"],
    "verifier": ["timeout_sec", "user", "env", "environment_mode"],
    "metadata": ["tags", "category", "difficulty"],
}


@QUICK
@given(st.dictionaries(st.sampled_from(_SERVICE_KEYS), _values, max_size=4), st.booleans())
def test_no_compose_file_ends_the_reader(
    tmp_path_factory: pytest.TempPathFactory, service: dict[str, object], more: bool
) -> None:
    root = Path(shutil.copytree(SAMPLES / "mend-a-script", tmp_path_factory.mktemp("mutated") / "task"))
    services: dict[str, object] = {"client": service, **({"other": {"image": "x"}} if more else {})}
    read_first(root, "docker-compose.yaml", yaml.safe_dump({"services": services}))


@QUICK
@given(st.dictionaries(st.sampled_from(_YAML_KEYS), _values, max_size=5))
def test_no_task_yaml_ends_the_reader(tmp_path_factory: pytest.TempPathFactory, content: dict[str, object]) -> None:
    root = Path(shutil.copytree(SAMPLES / "mend-a-script", tmp_path_factory.mktemp("mutated") / "task"))
    read_first(root, "task.yaml", yaml.safe_dump(content))


@QUICK
@given(st.data())
def test_no_task_toml_ends_the_reader(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A value of any kind in any place; what is taken has numbers that can be kept."""
    root = Path(shutil.copytree(SAMPLES / "answer-file", tmp_path_factory.mktemp("mutated") / "task"))
    section = data.draw(st.sampled_from(sorted(_TOML_KEYS)))
    key = data.draw(st.sampled_from(_TOML_KEYS[section]))
    value = data.draw(
        st.sampled_from(["nan", "-inf", "-1", "0", "1e308", '"x"', "[]", "{}", "[[1]]", "true", "1979-05-27"])
    )
    text = f"{HEAD}[{section}]\n{key} = {value}\n"
    tomllib.loads(text)
    task = read_toml(root, text).task
    if task is not None:
        limits = (task.agent_timeout_sec, task.verifier_timeout_sec, task.build_timeout_sec, task.resources.cpus)
        assert all(limit is None or 0 <= limit < 1e12 for limit in limits), text
