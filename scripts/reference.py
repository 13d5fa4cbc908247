"""Writes docs/reference/{commands,settings}.md and openapi.json from the code itself.

``--check`` fails when they differ from it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from pydantic import AliasChoices

from seatrial.api.app import create_app
from seatrial.cli.main import app
from seatrial.domain.described import field_texts
from seatrial.settings import Settings

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py from the code; `make reference` writes it anew. -->\n\n"


def settings_page() -> str:
    lines = [
        "# Settings\n",
        "Read from the environment, then `.env`, then `seatrial.toml` (there without the prefix, in lower case). "
        "A name in the third column is understood too, for users of other systems; the `SEATRIAL_` name wins.\n",
        "| setting | default | also read as | meaning |",
        "|---|---|---|---|",
    ]
    texts = field_texts(Settings)
    for name, field in Settings.model_fields.items():
        others = ""
        if isinstance(field.validation_alias, AliasChoices):
            others = ", ".join(f"`{choice}`" for choice in field.validation_alias.choices[1:])
        default = "" if field.default in ("", None) else f"`{_home_relative(field.default)}`"
        meaning = " ".join(texts.get(name, "").split()).replace("``", "`").replace("|", "\\|")
        lines.append(f"| `SEATRIAL_{name.upper()}` | {default} | {others} | {meaning} |")
    return NOTE + "\n".join(lines) + "\n"


def openapi_file() -> str:
    """What ``/openapi.json`` answers; the page and the Python client are made to fit it."""
    return json.dumps(create_app(Settings()).openapi(), indent=1, sort_keys=True) + "\n"


def _home_relative(value: object) -> str:
    return str(value).replace(str(Path.home()), "~")


def commands_page() -> str:
    root = typer.main.get_command(app)
    general = [row for parameter in root.params if (row := _parameter(parameter))]
    options = "Before the command:\n\n| option | meaning |\n|---|---|\n" + "\n".join(general) + "\n"
    return NOTE + "# Commands\n\n" + options + "\n" + "\n".join(_command(root, "seatrial")) + "\n"


def _command(command: object, path: str) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children or getattr(command, "invoke_without_command", False):
        yield f"## `{path}`\n"
        yield (getattr(command, "help", None) or "").strip() + "\n"
        rows = [row for parameter in command.params if (row := _parameter(parameter))]  # type: ignore[attr-defined]
        if rows:
            yield "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"
    for name, child in children.items():
        yield from _command(child, f"{path} {name}")


def _parameter(parameter: object) -> str | None:
    options = list(getattr(parameter, "opts", []))
    if "--help" in options or getattr(parameter, "hidden", False):
        return None
    meaning = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    if parameter.param_type_name == "argument":  # type: ignore[attr-defined]
        name = str(getattr(parameter, "metavar", None) or getattr(parameter, "name", "")).upper()
        return f"| `{name}{'…' if getattr(parameter, 'nargs', 1) != 1 else ''}` | {meaning} |"
    return f"| {', '.join(f'`{option}`' for option in options)} | {meaning} |"


def main() -> int:
    pages = {"settings.md": settings_page(), "commands.md": commands_page(), "openapi.json": openapi_file()}
    stale = [name for name, text in pages.items() if not _same(REFERENCE / name, text)]
    if "--check" in sys.argv:
        if stale:
            sys.stderr.write(f"Out of date: {', '.join(stale)}. Run 'make reference'.\n")
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (REFERENCE / name).write_text(text)
    return 0


def _same(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
