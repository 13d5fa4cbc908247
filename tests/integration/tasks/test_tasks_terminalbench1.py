"""Terminal-Bench 1 tasks: reading them, and the Harbor tasks they become."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.domain.task import Severity, TaskFormat, TaskProblem
from seatrial.errors import InvalidTask
from seatrial.task_content.digest import content_digest

SAMPLES = Path(__file__).parents[3] / "samples"
READER = TerminalBench1Tasks()


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "mend-a-script", tmp_path / "mend-a-script"))


def errors(task: Path) -> list[TaskProblem]:
    return [found for found in READER.inspect(task).problems if found.severity is Severity.ERROR]


def edit(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def prepared(task: Path) -> Path:
    return READER.prepare(task, task.parent / "prepared" / task.name)


APP = {"Dockerfile", *(f"app/{path.name}" for path in (SAMPLES / "mend-a-script" / "app").iterdir())}


def build_files(task: Path) -> set[str]:
    environment = prepared(task) / "environment"
    return {str(path.relative_to(environment)) for path in environment.rglob("*") if path.is_file()}


def config(folder: Path) -> dict[str, dict[str, object]]:
    return tomllib.loads((folder / "task.toml").read_text())


class TestReading:
    def test_everything_a_task_says_about_itself_is_read(self, task: Path) -> None:
        inspection = READER.inspect(task)
        found = inspection.task
        assert inspection.problems == ()
        assert found is not None
        assert (found.name, found.format) == ("mend-a-script", TaskFormat.TERMINAL_BENCH_1)
        assert (found.category, found.difficulty, found.tags) == (
            "software-engineering",
            "easy",
            ("python", "debugging"),
        )
        assert (found.agent_timeout_sec, found.verifier_timeout_sec) == (180, 60)
        assert (found.has_solution, found.services, found.resources.gpus) == (True, (), 0)
        assert found.digest == content_digest(task)
        assert found.instruction.startswith("The script /app/average.py")

    def test_of_several_wordings_the_base_is_taken(self, task: Path) -> None:
        wordings = [{"key": "hard", "description": "Do it."}, {"key": "base", "description": "Please do it."}]
        (task / "task.yaml").write_text(yaml.safe_dump({"descriptions": wordings, "difficulty": "easy"}))
        found = READER.inspect(task).task
        assert found is not None
        assert found.instruction == "Please do it."
        assert (found.agent_timeout_sec, found.verifier_timeout_sec) == (360, 60)

    @pytest.mark.parametrize(
        ("old", "new", "line", "words"),
        [
            ("parser_name: pytest", "parser_name: nose", 13, "parser_name"),
            ("max_agent_timeout_sec: 180.0", "max_agent_timeout_sec: soon", 14, "max_agent_timeout_sec"),
            ("max_test_timeout_sec: 60.0", "max_test_timeout_sec: -1", 15, "max_test_timeout_sec"),
            ("difficulty: easy", "difficulty: [easy", 8, "YAML"),
        ],
    )
    def test_a_bad_value_has_its_line(self, task: Path, old: str, new: str, line: int, words: str) -> None:
        edit(task / "task.yaml", old, new)
        (found,) = errors(task)
        assert found.file == "task.yaml"
        assert found.line is not None
        assert abs(found.line - line) <= 1
        assert words in found.message
        with pytest.raises(InvalidTask):
            prepared(task)

    def test_all_problems_come_at_once(self, task: Path) -> None:
        edit(task / "task.yaml", "parser_name: pytest", "parser_name: nose")
        (task / "run-tests.sh").unlink()
        (task / "Dockerfile").unlink()
        (task / "solution.sh").unlink()
        (task / "solution.yaml").write_text("- commando: ls\n")
        (task / "out").symlink_to("/etc")
        files = {found.file for found in errors(task)}
        assert files == {"task.yaml", "run-tests.sh", "Dockerfile", "solution.yaml", "out"}

    def test_unknown_fields_and_words_are_warnings(self, task: Path) -> None:
        edit(task / "task.yaml", "difficulty: easy", "difficulty: trivial\nmax_test_timeout: 3")
        found = READER.inspect(task)
        assert found.task is not None
        assert sorted(problem.message.split(":")[0] for problem in found.problems) == ["difficulty", "max_test_timeout"]
        assert any("max_test_timeout_sec" in problem.fix for problem in found.problems)

    def test_tests_in_the_agents_shell_are_a_warning(self, task: Path) -> None:
        edit(task / "task.yaml", "run_tests_in_same_shell: false", "run_tests_in_same_shell: true")
        (found,) = READER.inspect(task).problems
        assert found.severity is Severity.WARNING

    def test_harbor_tasks_are_left_to_the_other_reader(self, task: Path) -> None:
        assert READER.recognises(task)
        assert not READER.recognises(SAMPLES / "answer-file")
        assert not HarborTasks().recognises(task)


class TestMapping:
    def test_the_result_is_a_valid_harbor_task(self, task: Path) -> None:
        folder = prepared(task)
        inspection = HarborTasks().inspect(folder)
        assert inspection.problems == ()
        assert inspection.task is not None
        assert inspection.task.tags == ("python", "debugging")
        assert (folder / "instruction.md").read_text().startswith("The script")
        assert config(folder)["agent"]["timeout_sec"] == 180
        assert config(folder)["verifier"] == {"timeout_sec": 120.0, "user": "root"}
        assert config(folder)["environment"]["env"] == {"TEST_DIR": "/tests"}
        assert not {"cpus", "memory_mb"} & set(config(folder)["environment"])

    def test_is_deterministic_and_leaves_the_original_alone(self, task: Path, tmp_path: Path) -> None:
        before = content_digest(task)
        first = READER.prepare(task, tmp_path / "1")
        second = READER.prepare(task, tmp_path / "2")
        assert content_digest(first) == content_digest(second)
        assert content_digest(task) == before

    def test_tests_and_solution_stay_out_of_the_image(self, task: Path) -> None:
        edit(task / "Dockerfile", "COPY app/ /app/", "COPY . /app/")
        assert build_files(task) == APP

    @pytest.mark.parametrize(
        ("copy", "there"),
        [
            ("COPY tests/data/ /app/", {"tests/data/a"}),
            ("COPY --chown=root ./tests/helper.py /app/", {"tests/helper.py"}),
            ("COPY /tests/*.txt \\\n  /app/", {"tests/b.txt"}),
            ('ADD ["solution.sh", "/app/"]', {"solution.sh"}),
            ("COPY --from=builder tests/helper.py /app/", set()),
        ],
    )
    def test_what_the_dockerfile_names_is_there(self, task: Path, copy: str, there: set[str]) -> None:
        (task / "tests" / "data").mkdir()
        for name in ("data/a", "helper.py", "b.txt"):
            (task / "tests" / name).write_text("x")
        with (task / "Dockerfile").open("a") as dockerfile:
            dockerfile.write(copy + "\n")
        assert build_files(task) == APP | there

    def test_a_task_without_a_compose_file_has_one_container(self, task: Path) -> None:
        (task / "docker-compose.yaml").unlink()
        assert READER.inspect(task).problems == ()
        assert (prepared(task) / "environment" / "Dockerfile").is_file()

    def test_limits_workdir_and_environment_become_fields(self, task: Path) -> None:
        compose = yaml.safe_load((task / "docker-compose.yaml").read_text())
        client = compose["services"]["client"]
        client["deploy"] = {"resources": {"limits": {"memory": "4.0G", "cpus": "1.5"}}}
        client["environment"] = {"A": "${B:-b}", "C": "${T_BENCH_TEST_DIR}/c"}
        client["working_dir"] = "/srv"
        (task / "docker-compose.yaml").write_text(yaml.safe_dump(compose))
        folder = prepared(task)
        environment = config(folder)["environment"]
        assert (environment["memory_mb"], environment["cpus"], environment["workdir"]) == (4096, 2, "/srv")
        assert environment["env"] == {"TEST_DIR": "/tests", "A": "b", "C": "/tests/c"}
        assert not (folder / "environment" / "docker-compose.yaml").exists()

    def test_nothing_is_taken_from_this_machines_environment(self, task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CANARY", "canary-value")
        edit(task / "docker-compose.yaml", "${T_BENCH_TEST_DIR}", "${CANARY}")
        assert [found.severity for found in READER.inspect(task).problems] == [Severity.WARNING]
        texts = [path.read_text() for path in prepared(task).rglob("*") if path.is_file()]
        assert not any("canary-value" in text or "${CANARY}" in text for text in texts)

    def test_variables_are_filled_in_once(self, task: Path) -> None:
        compose = yaml.safe_load((task / "docker-compose.yaml").read_text())
        compose["services"]["client"]["environment"] = {"A": "$$A ${B:-${C:-c}}"}
        db = {"image": "postgres:${VERSION:-16}", "environment": {"D": "$$5", "E": "$F"}, "hostname": "${G:+g}db"}
        compose["services"]["db"] = db
        (task / "docker-compose.yaml").write_text(yaml.safe_dump(compose))
        assert [found.message for found in READER.inspect(task).problems if "$" in found.message] == [
            "${F} is not known here and is left empty."
        ]
        folder = prepared(task)
        services = yaml.safe_load((folder / "environment" / "docker-compose.yaml").read_text())["services"]
        assert config(folder)["environment"]["env"]["A"] == "$A c"
        assert services["main"]["environment"]["A"] == "$$A c"
        assert services["db"] == {
            "image": "postgres:16",
            "environment": {"D": "$$5", "E": ""},
            "hostname": "db",
        }

    def test_what_compose_cannot_read_is_a_problem(self, task: Path) -> None:
        edit(task / "docker-compose.yaml", "${T_BENCH_TEST_DIR}", "${1}")
        (found,) = errors(task)
        assert "${1}" in found.message and "$$" in found.fix

    def test_a_context_of_its_own_becomes_the_environment(self, task: Path) -> None:
        (task / "client").mkdir()
        shutil.move(task / "Dockerfile", task / "client" / "Image")
        shutil.move(task / "app", task / "client" / "app")
        edit(task / "docker-compose.yaml", "dockerfile: Dockerfile", "context: client\n      dockerfile: Image")
        assert READER.inspect(task).problems == ()
        environment = prepared(task) / "environment"
        assert (environment / "Dockerfile").read_text() == (task / "client" / "Image").read_text()
        assert (environment / "app" / "average.py").is_file()
        assert not (environment / "docker-compose.yaml").exists()

    def test_a_context_outside_the_task_is_refused(self, task: Path) -> None:
        edit(task / "docker-compose.yaml", "dockerfile: Dockerfile", "context: ../..")
        (found,) = errors(task)
        assert (found.file, found.line) == ("docker-compose.yaml", 3)

    def test_keys_that_change_the_container_stay_compose(self, task: Path) -> None:
        compose = yaml.safe_load((task / "docker-compose.yaml").read_text())
        compose["services"]["client"]["network_mode"] = "host"
        (task / "docker-compose.yaml").write_text(yaml.safe_dump(compose))
        written = yaml.safe_load((prepared(task) / "environment" / "docker-compose.yaml").read_text())
        assert written == {"services": {"main": {"network_mode": "host", "environment": {"TEST_DIR": "/tests"}}}}

    def test_further_services_are_kept_and_reported(self, task: Path) -> None:
        compose = yaml.safe_load((task / "docker-compose.yaml").read_text())
        services = compose["services"]
        services["client"]["depends_on"] = ["db"]
        services["db"] = {
            "image": "postgres:16",
            "container_name": "${T_BENCH_TASK_DOCKER_NAME_PREFIX}__db",
            "volumes": ["${T_BENCH_TASK_LOGS_PATH}:/logs", "data:/data"],
            "depends_on": {"client": {"condition": "service_started"}},
        }
        compose["volumes"] = {"data": {}}
        (task / "docker-compose.yaml").write_text(yaml.safe_dump(compose))
        inspection = READER.inspect(task)
        assert inspection.task is not None
        assert inspection.task.services == ("db",)
        assert [found.severity for found in inspection.problems] == [Severity.WARNING]
        folder = prepared(task)
        written = yaml.safe_load((folder / "environment" / "docker-compose.yaml").read_text())
        assert written["services"]["db"] == {
            "image": "postgres:16",
            "volumes": ["data:/data"],
            "depends_on": {"main": {"condition": "service_started"}},
        }
        assert written["services"]["main"]["networks"] == {"default": {"aliases": ["client"]}}
        mapped = HarborTasks().inspect(folder).task
        assert mapped is not None
        assert mapped.services == ("db",)

    def test_gpus_are_counted(self, task: Path) -> None:
        compose = yaml.safe_load((task / "docker-compose.yaml").read_text())
        devices = [{"driver": "nvidia", "device_ids": ["0", "1"], "capabilities": ["gpu"]}]
        compose["services"]["client"]["deploy"] = {"resources": {"reservations": {"devices": devices}}}
        (task / "docker-compose.yaml").write_text(yaml.safe_dump(compose))
        found = READER.inspect(task).task
        assert found is not None
        assert found.resources.gpus == 2
        assert config(prepared(task))["environment"]["gpus"] == 2

    def test_a_test_script_of_the_tasks_own_is_set_aside(self, task: Path) -> None:
        (task / "tests" / "test.sh").write_text("echo mine\n")
        tests = prepared(task) / "tests"
        assert (tests / ".task-test.sh").read_text() == "echo mine\n"
        assert "run-tests.sh" in (tests / "test.sh").read_text()


class TestHostileYaml:
    BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40))

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("text", [BOMB + "tags: *a39\n", MERGES, "tags: " + "[" * 5000])
    @pytest.mark.parametrize("file", ["task.yaml", "docker-compose.yaml", "solution.yaml"])
    def test_is_refused_in_no_time(self, task: Path, file: str, text: str) -> None:
        if file == "solution.yaml":
            (task / "solution.sh").unlink()
        (task / file).write_text(text)
        assert {found.file for found in errors(task)} == {file}

    def test_ordinary_aliases_are_fine(self, task: Path) -> None:
        edit(task / "task.yaml", "category: software-engineering", "category: &word software-engineering")
        edit(task / "task.yaml", "  - debugging", "  - *word")
        found = READER.inspect(task).task
        assert found is not None
        assert found.tags == ("python", "software-engineering")
