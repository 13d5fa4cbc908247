"""The fields of a Terminal-Bench 1 ``task.yaml``, their defaults, and checks."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from seatrial.adapters.positions import line_of, yaml_positions
from seatrial.adapters.task_problems import LONGEST_SEC, FileProblems, Problems, read_text, read_yaml

CONFIG = "task.yaml"
_DIFFICULTIES = ("easy", "medium", "hard", "unknown")

ParserName = Literal["pytest", "swebench", "sweperf", "mlebench", "swelancer"]
_SCALARS = (str, int, float, bool, date)
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, _SCALARS) else value or "")]
"""Text. YAML reads unquoted numbers and dates as such, so they are converted back."""


class Description(BaseModel):
    """One wording of the instruction, in early tasks."""

    key: str = "base"
    description: str


class TerminalBench1Config(BaseModel):
    """A ``task.yaml`` with Terminal-Bench's defaults. Some fields are known but have no effect here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instruction: str = ""
    descriptions: tuple[Description, ...] = ()
    author_name: Text = "unknown"
    author_email: Text = "unknown"
    difficulty: Text = "unknown"
    category: Text = "software_engineering"
    tags: tuple[Text, ...] = ()
    parser_name: ParserName = "pytest"
    max_agent_timeout_sec: float = Field(default=360.0, gt=0, le=LONGEST_SEC)
    max_test_timeout_sec: float = Field(default=60.0, gt=0, le=LONGEST_SEC)
    run_tests_in_same_shell: bool = False
    disable_asciinema: bool = False
    test_scripts: Any = None
    estimated_duration_sec: float | None = None
    expert_time_estimate_min: float | None = None
    junior_time_estimate_min: float | None = None
    env_name: Any = None

    @property
    def words(self) -> str:
        """The instruction; of several wordings the one called ``base``, else the first."""
        if self.instruction.strip() or not self.descriptions:
            return self.instruction
        base = [wording for wording in self.descriptions if wording.key == "base"]
        return (base or list(self.descriptions))[0].description


def read_config(root: Path, problems: Problems) -> TerminalBench1Config | None:
    """The configuration, or ``None`` and at least one problem."""
    text = read_text(root, CONFIG, problems)
    if text is None:
        return None
    raw = read_yaml(text, CONFIG, problems)
    if not isinstance(raw, dict):
        if not problems.fatal:
            problems.error(CONFIG, "is not a mapping.", line=1, fix="Write one 'field: value' per line.")
        return None
    positions = yaml_positions(text)
    found = FileProblems(problems, CONFIG, positions)
    for key in (key for key in raw if key not in TerminalBench1Config.model_fields):
        found.warn_unknown((str(key),), TerminalBench1Config.model_fields, "is ignored", fix="Remove it.")
    try:
        config = TerminalBench1Config.model_validate(raw)
    except ValidationError as bad:
        found.report_invalid(bad)
        return None
    if not config.words.strip():
        line = line_of(positions, ["instruction"]) or line_of(positions, ["descriptions"]) or 1
        problems.error(CONFIG, "instruction: is missing or empty.", line=line, fix="Say what the agent is to do.")
    _warn(config, found)
    return config


def _warn(config: TerminalBench1Config, found: FileProblems) -> None:
    if config.difficulty not in _DIFFICULTIES:
        message = f"{config.difficulty!r} is not one of Terminal-Bench's values."
        found.warn(("difficulty",), message, fix=f"Use one of {', '.join(_DIFFICULTIES)}.")
    if config.run_tests_in_same_shell:
        message = "the tests get a separate shell and see nothing of the agent's."
        found.warn(("run_tests_in_same_shell",), message, fix="Let the tests check files and processes.")
