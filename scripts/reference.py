"""Writes docs/reference/{commands,settings,agents}.md and openapi.json from the code itself, and the list of proven
agents from what tests/agents runs.

``--check`` fails when they differ from it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import typer
from pydantic import AliasChoices

from seatrial.api.app import create_app
from seatrial.cli.main import app
from seatrial.domain.described import field_texts
from seatrial.settings import Settings

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PROVEN = ROOT / "src" / "seatrial" / "domain" / "agents" / "proven_agents.py"
NOTE = "<!-- Written by scripts/reference.py from the code; `make reference` rewrites it. -->\n\n"


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
        return f"| `{name.removesuffix('…')}{'…' if getattr(parameter, 'nargs', 1) != 1 else ''}` | {meaning} |"
    return f"| {', '.join(f'`{option}`' for option in options)} | {meaning} |"


def proven_module() -> str:
    """Without importing anything of ours: that would read the module as it was."""
    by_agent: dict[str, list[Any]] = {}
    for proof in _proofs():
        by_agent.setdefault(proof.agent, []).append(f'("{proof.version}", "{proof.model}", "{proof.format}"),')
    entries = "\n".join(f'    "{agent}": ({" ".join(rows)}),' for agent, rows in by_agent.items())
    return (
        '"""What the tests of tests/agents show. Written by `make reference` from tests/agents/registry.py."""\n\n'
        "from __future__ import annotations\n\nfrom collections.abc import Mapping\n\n"
        f"PROVEN: Mapping[str, tuple[tuple[str, str, str], ...]] = {{\n{entries}\n}}\n"
        '"""By agent: version, model and wire format."""\n'
    )


def agents_page() -> str:
    from seatrial.domain.agents.catalogue import AGENTS

    proofs = _proofs()
    lines = [
        "# Agents\n",
        "`seatrial agents` shows the same, and which kits are ready on this machine. *Proven* is what `make agents` "
        "runs: this version of the real program solves a sample in the `oci` sandbox without a network, through the "
        "gate, and calls, tokens and cost are what the model's server counted. The other agents are Harbor's; our "
        "tests do not run them.\n",
        "| agent | model | key | formats | proven | from |",
        "|---|---|---|---|---|---|",
    ]
    for agent in AGENTS:
        model = "required" if agent.needs_model else ""
        keys = " or ".join(f"`{key}`" for key in agent.keys) or ("the model's" if agent.needs_model else "")
        shown = [proof for proof in proofs if proof.agent == agent.name]  # what the catalogue has may be of before
        proven = ", ".join(f"{proof.version} ({proof.format})" for proof in shown)
        sources = ", ".join(proof.source for proof in shown)
        lines.append(f"| `{agent.name}` | {model} | {keys} | {', '.join(agent.formats)} | {proven} | {sources} |")
    return NOTE + "\n".join(lines) + "\n"


def _proofs() -> tuple[Any, ...]:
    found: tuple[Any, ...] = run_path(str(ROOT / "tests" / "agents" / "registry.py"))["PROOFS"]
    return found


def main() -> int:
    pages = {
        PROVEN: proven_module(),
        REFERENCE / "agents.md": agents_page(),
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "commands.md": commands_page(),
        REFERENCE / "openapi.json": openapi_file(),
    }
    stale = [file.name for file, text in pages.items() if not _same(file, text)]
    if "--check" in sys.argv:
        if stale:
            sys.stderr.write(f"Out of date: {', '.join(stale)}. Run 'make reference'.\n")
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for file, text in pages.items():
        file.write_text(text)
    return 0


def _same(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
