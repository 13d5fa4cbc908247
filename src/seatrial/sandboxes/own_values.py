"""A task's own environment variables, without anything of this process's environment.

Harbor fills ``${NAME}`` in from the worker's environment, secrets included. ``Sandbox`` and ``rollouts`` hand Harbor
values in which nothing is left to fill in.
"""

from __future__ import annotations

from typing import NoReturn

from seatrial.domain.substitution import Malformed, substitute
from seatrial.errors import Unsupported


def own_values(env: dict[str, str]) -> dict[str, str]:
    """A task's variables without anything of this process's environment; see ``Sandbox._maybe_resolve_task_env``.

    As in Harbor, only a value that is a variable as a whole is filled in; ``$`` inside of other text is plain."""
    return {name: _own_value(name, value) for name, value in env.items()}


def _own_value(name: str, value: str) -> str:
    def refused(*_: object) -> NoReturn:
        raise Unsupported(
            f"The task's {name} refers to {value} in the worker's environment, which tasks cannot read.",
            fix=f"Give {name} a value in the task's environment, or a default: ${{NAME:-value}}.",
        )

    def is_variable(text: str) -> bool:
        return text.startswith("${") and text.endswith("}")

    if not is_variable(value):
        return value
    try:
        filled = substitute(value, lambda name: None, refused)
    except Malformed:
        refused()
    return refused() if is_variable(filled) else filled  # Harbor would fill it in once more
