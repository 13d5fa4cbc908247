"""Scripts that act as a model: each reads the conversation and decides the next step.

A script is a function from a ``View`` of the conversation to an ``Act``. It is stateless: it reads everything from the
messages, as a model does, so one script serves any number of conversations. Its next input depends on the screen that
came back, so it needs a real terminal to make progress.

``SCRIPTS`` lists those that users can name: ``seatrial run … -m scripted/<name>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.tools import BASH, ShellTool


@dataclass(frozen=True, slots=True)
class Act:
    """The script's action in one turn. The server formats it for the agent."""

    why: str
    commands: tuple[str, ...] = ()
    """Lines to type, in order. Empty: look again after ``wait``."""
    wait: float = 0.3
    """Seconds to wait after each command."""
    done: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A conversation as the model sees it."""

    messages: tuple[Mapping[str, Any], ...]
    """In the shape of OpenAI's chat, whatever the request's format is."""
    tools: bool = False
    """The agent expects tool calls instead of text."""
    tool: ShellTool = BASH
    """The tool that runs commands."""

    @property
    def instruction(self) -> str:
        """What the user said before the first answer: the agent's prompt with the task's instruction."""
        before = takewhile(lambda message: message.get("role") != "assistant", self.messages)
        return "\n".join(text_of(message) for message in before if message.get("role") == "user")

    @property
    def latest(self) -> tuple[Mapping[str, Any], ...]:
        """What came since the model's last answer."""
        reversed_latest = takewhile(lambda message: message.get("role") != "assistant", reversed(self.messages))
        return tuple(reversed_latest)[::-1]

    @property
    def screen(self) -> str:
        """The last output. In the first prompt only the terminal part: instructions quote what will be seen."""
        said = "\n".join(text_of(message) for message in self.latest)
        return said if self.turns else said.partition(_TERMINAL)[2]

    @property
    def turns(self) -> int:
        """How often the model has answered."""
        return sum(message.get("role") == "assistant" for message in self.messages)

    @property
    def wants_submission(self) -> bool:
        """mini-swe-agent needs a final command; others stop at an answer without a tool call."""
        return any(SUBMISSION in text_of(message) for message in self.messages[:2])

    @property
    def asked_to_confirm(self) -> bool:
        """terminus-2 asks for confirmation that the task is complete."""
        return "Are you sure you want to mark the task as complete" in self.screen

    def has_typed(self, text: str) -> bool:
        quoted = json.dumps(text)[1:-1]
        for message in self.messages:
            if message.get("role") == "assistant":
                said = text_of(message) + json.dumps(message.get("tool_calls") or "")
                if text in said or quoted in said or json.dumps(quoted)[1:-1] in said:
                    return True
        return False


SUBMISSION = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""mini-swe-agent's final command must print this."""
_TERMINAL = "\nCurrent terminal state:\n"
Script = Callable[[View], Act | Fault]


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text, whether it is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def solve_read_the_screen(view: View) -> Act:
    """Solves the sample ``read-the-screen``: types each code that the screen shows."""
    screen = view.screen
    if view.asked_to_confirm or "ALL CODES ACCEPTED" in screen:
        return Act("Every code was accepted.", done=True)
    codes = re.findall(r"Code \d of 3: (\d{6})", screen)
    if codes and not view.has_typed(f"/app/reply.sh {codes[-1]}"):
        return Act(f"The screen shows the code {codes[-1]}.", (f"/app/reply.sh {codes[-1]}",))
    if "Run /app/challenge.sh" in screen or not (codes or view.has_typed("/app/challenge.sh")):
        return Act("There is no code yet, so the challenge has to be started.", ("/app/challenge.sh",))
    return Act("The answer is not on the screen yet.", wait=0.5)


def shell(view: View) -> Act:
    """Types the commands of the instruction's first fenced block, waits until they ended, and completes."""
    block = re.search(r"^```(?:sh|bash|console)?\n(.*?)^```", view.instruction, re.DOTALL | re.MULTILINE)
    if block is None:
        return Act("The instruction has no commands in a fenced block.", done=True)
    if view.asked_to_confirm or "finished-42" in view.screen:
        return Act("The commands have run.", done=True)
    end = "printf 'finished-%d\\n' 42"  # the screen shows the number behind the word when the shell gets there
    if view.has_typed(end):
        return Act("The commands are still running.", wait=1.0)
    commands = [line for line in block[1].splitlines() if line.strip()]
    if view.tools:
        return Act("Running the commands of the instruction.", ("\n".join([*commands, end]),))
    return Act("Running the commands of the instruction.", (*commands, end), wait=0.1)


def give_up(view: View) -> Act:
    """Completes without doing anything."""
    return Act("There is nothing I want to do.", done=True)


def outage(view: View) -> Fault:
    """A model whose service is down: every call gets HTTP 503."""
    return Fault(kind="server_error", status=503)


SCRIPTS: Mapping[str, Script] = {
    "solve-read-the-screen": solve_read_the_screen,
    "shell": shell,
    "give-up": give_up,
    "outage": outage,
}
