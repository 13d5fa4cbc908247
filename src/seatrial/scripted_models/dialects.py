"""Says a script's act as the agent that asked expects it.

terminus-2 expects commands as JSON (or XML) text and asks for confirmation of "complete". mini-swe-agent expects tool
calls and a final command. Other agents with tools stop at an answer without a tool call. The conversation shows which
agent asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from seatrial.scripted_models.answer import Answer, Asked, Counted, ToolCall, tokens_of
from seatrial.scripted_models.scripts import SUBMISSION, Act, View, text_of
from seatrial.scripted_models.tools import least_value

SUBMIT = f"echo {SUBMISSION}"
"""The command that ends a task of mini-swe-agent."""


def answer(asked: Asked, act: Act, number: int) -> Answer:
    """The act in the words of the agent of this conversation."""
    view, call = asked.view, None
    text = act.why
    if asked.schema is not None:
        text = json.dumps(least_value(asked.schema))
    elif view.tools:
        if not act.done or view.wants_submission:
            call = ToolCall(f"call-scripted-{number}", view.tool.name, view.tool.arguments(_shell_command(act)))
    elif asked.for_terminal:
        is_xml = "<keystrokes" in view.instruction and '"keystrokes"' not in view.instruction
        text = _terminus_xml(act) if is_xml else _terminus_json(act)
    return Answer(f"scripted-{number}", asked.model, text, call, _counted(asked, text, call), int(time.time()))


def count_prompt(view: View) -> int:
    return tokens_of(_length(view.messages))


def _counted(asked: Asked, text: str, call: ToolCall | None) -> Counted:
    view = asked.view
    prompt = count_prompt(view)
    known = _length(view.messages[: len(view.messages) - len(view.latest)])
    said = text + (json.dumps(call.arguments) if call is not None else "")
    cached = min(tokens_of(known), prompt) if asked.caches and known else 0
    return Counted(prompt, cached, tokens_of(len(said)))


def _length(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(text_of(message)) for message in messages)


def _terminus_json(act: Act) -> str:
    commands = [{"keystrokes": f"{line}\n", "duration": act.wait} for line in act.commands]
    if not commands and not act.done:
        commands = [{"keystrokes": "", "duration": act.wait}]
    plan = "Mark the task as complete." if act.done else "Type the commands and look at the screen."
    content = {"analysis": act.why, "plan": plan, "commands": commands, "task_complete": act.done}
    return json.dumps(content, indent=2)


def _terminus_xml(act: Act) -> str:
    keys = "\n".join(f'<keystrokes duration="{act.wait}">{escape(line)}\n</keystrokes>' for line in act.commands) or (
        "" if act.done else f'<keystrokes duration="{act.wait}"></keystrokes>'
    )
    done = "\n<task_complete>true</task_complete>" if act.done else ""
    return (
        f"<response>\n<analysis>{escape(act.why)}</analysis>\n<plan>Go on.</plan>\n"
        f"<commands>\n{keys}\n</commands>{done}\n</response>"
    )


def _shell_command(act: Act) -> str:
    if act.done:
        return SUBMIT
    return "\n".join(act.commands) or f"sleep {act.wait}"
