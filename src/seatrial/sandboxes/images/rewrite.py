"""Turns a Dockerfile into one that every builder we have understands and that no hostile task can use against us.

Here-documents become ``RUN ["sh", "-c", …]`` and generated files (buildah 1.28 and Docker 20.10 know none); ``RUN
--mount`` becomes copies: caches shared between tasks could be poisoned, and old builders follow links of a bind's
source out to the host. ``FROM`` names are spoken in full, build arguments are written in. Pure: the files are returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.errors import ImageFault, Unsupported
from seatrial.sandboxes.images import references
from seatrial.sandboxes.images.dockerfile import Heredoc, Instruction, shell_words
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.stages import Recipe, Stage, Walk, mount_fields
from seatrial.sandboxes.images.trust import Trust
from seatrial.sandboxes.images.variables import assignments, expand

TASK_DIR = "task"
"""Folder of the context that has the task's own files, where generated ones stand beside them."""
MADE_DIR = "made"
_LONGEST_SCRIPT = 120_000  # one argument of a process may have 128 KiB
_RUN_AS_FILE = (
    'f=$(mktemp /tmp/heredoc.XXXXXX) && printf %s "$1" >"$f" && chmod 755 "$f" && "$f"; s=$?; rm -f "$f"; exit $s'
)
_URL = re.compile(r"(https?|git|ssh)://|git@")


@dataclass(slots=True)
class Rewritten:
    text: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """Generated files by their path in the context."""
    notes: list[str] = field(default_factory=list)
    """What differs from what was written, for the build's log."""

    @property
    def apart(self) -> bool:
        """Whether the task's files go into ``TASK_DIR``, because generated ones stand beside them."""
        return bool(self.files)


def rewrite(recipe: Recipe, bases: Mapping[str, ImageConfig], trust: Trust | None = None) -> Rewritten:
    writer = _Writer(recipe, bases, trust)
    lines = ["# escape=`"] if recipe.dockerfile.escape == "`" else []
    for instruction in recipe.dockerfile.instructions:
        lines.extend(writer.lines(instruction))
    writer.done.text = "\n".join(lines) + "\n"
    return writer.done


class _Writer:
    def __init__(self, recipe: Recipe, bases: Mapping[str, ImageConfig], trust: Trust | None) -> None:
        self.done = Rewritten()
        self._walk = Walk(recipe, bases)
        self._bases = bases
        self._trust = trust
        self._escape = recipe.dockerfile.escape
        if trust is not None:
            self.done.files.update({f"{MADE_DIR}/ca/{name}": pem for name, pem in trust.files.items()})
        if any(_makes_files(instruction) for instruction in recipe.dockerfile.instructions):
            self.done.files[f"{MADE_DIR}/empty/"] = ""

    def lines(self, instruction: Instruction) -> list[str]:
        stage = self._walk.step(instruction)
        if stage is None:  # an ARG before the first FROM: its value is written where it is used
            return []
        match instruction.keyword:
            case "FROM":
                return self._from(stage)
            case "ARG":
                return self._arg(instruction)
            case "COPY" | "ADD":
                return self._copy(stage, instruction)
            case "RUN":
                return self._run(stage, instruction)
            case _:
                return [instruction.text]

    def _from(self, stage: Stage) -> list[str]:
        lines = [f"FROM {stage.parent}" + (f" AS {stage.name}" if stage.name else "")]
        if self._trust is None or stage.parent == "scratch":
            return lines
        if stage.base is not None and not self._trust.is_in(self._bases.get(stage.base, ImageConfig())):
            lines += self._as_root(stage, self._trust.instructions(f"{MADE_DIR}/ca/"))
        return lines + [f"ARG {name}={self._trust.bundle}" for name in self._trust.variables]

    def _arg(self, instruction: Instruction) -> list[str]:
        lines = []
        for name, default in assignments(instruction.rest):
            value = (
                None if default and name not in self._walk.recipe.build_args else self._walk.known_arg(name, default)
            )
            written = default if default and value is None else self._quoted(value) if value is not None else ""
            lines.append(f"ARG {name}={written}" if written else f"ARG {name}")
        return lines

    def _quoted(self, value: str) -> str:
        return '"' + re.sub(r'([\\"$`])' if self._escape == "`" else r'([\\"$])', self._escaped, value) + '"'

    def _escaped(self, match: re.Match[str]) -> str:
        return self._escape + match[1]

    def _copy(self, stage: Stage, instruction: Instruction) -> list[str]:
        flags = [flag for flag in instruction.flags if not flag.startswith("--link")]
        if instruction.flag("from") is not None:
            flags = [self._full_from(stage, flag) for flag in flags]
            return [" ".join([instruction.keyword, *flags, instruction.rest])]
        if not self.done.apart:
            return [" ".join([instruction.keyword, *flags, instruction.rest])]
        is_json = instruction.rest.startswith("[")
        words = _json_list(instruction) if is_json else shell_words(instruction.rest)
        made = {heredoc.word: self._file(stage, heredoc) for heredoc in instruction.heredocs}
        sources = [made[word] if word in made else self._in_task(stage, word) for word in words[:-1]]
        moved = [*sources, words[-1]]
        return [" ".join([instruction.keyword, *flags, json.dumps(moved) if is_json else " ".join(moved)])]

    def _full_from(self, stage: Stage, flag: str) -> str:
        if not flag.startswith("--from="):
            return flag
        name = expand(flag.removeprefix("--from="), stage.scope.values)
        return f"--from={self._full_name(name)}"

    def _full_name(self, name: str) -> str:
        return name if self._walk.find_stage(name) is not None else str(references.parse(name))

    def _in_task(self, stage: Stage, word: str) -> str:
        if _URL.match(expand(word, stage.scope.values)):
            return word
        quote = word[0] if word[:1] in ('"', "'") else ""
        return f"{quote}{TASK_DIR}/{word[len(quote) :].removeprefix('/')}"

    def _file(self, stage: Stage, heredoc: Heredoc) -> str:
        if "/" in heredoc.name or heredoc.name in (".", ".."):
            raise ImageFault(f"{heredoc.name!r} cannot be the name of a here-document of COPY.")
        path = f"{MADE_DIR}/{len(self.done.files)}/{heredoc.name}"
        content = heredoc.content
        self.done.files[path] = expand(content, stage.scope.values, quotes=False) if heredoc.expands else content
        return path

    def _run(self, stage: Stage, instruction: Instruction) -> list[str]:
        before: list[str] = []
        after: list[str] = []
        for flag in instruction.flags:
            if flag.startswith("--mount="):
                put, take = self._mount(stage, flag)
                before, after = before + put, after + take
            elif flag == "--security=insecure":
                raise Unsupported(f"Line {instruction.line} of the Dockerfile asks for RUN --security=insecure.")
            elif flag == "--network=none":
                self.done.notes.append(f"line {instruction.line}: RUN --network=none runs with the network on")
        if instruction.heredocs:
            command = _heredoc_command(stage.shell, instruction)
        elif not instruction.flags:
            return [instruction.text]
        else:
            command = instruction.rest
        return [*before, f"RUN {command}", *after]

    def _mount(self, stage: Stage, flag: str) -> tuple[list[str], list[str]]:
        """Instructions before and after a ``RUN`` that have the effect of one of its mounts."""
        fields = {name: expand(value, stage.scope.values) for name, value in mount_fields(flag).items()}
        kind, target = fields.get("type", "bind"), fields.get("target", "")
        if kind in ("secret", "ssh"):
            if fields.get("required") in ("true", "1", ""):
                raise Unsupported(f"The Dockerfile needs a {kind} at build time; Seatrial hands none to builds.")
            self.done.notes.append(f"left out {flag}: builds get no secrets")
            return [], []
        if not target:
            raise ImageFault(f"{flag} has no target.")
        if not target.startswith("/"):
            target = f"{stage.workdir.rstrip('/')}/{target}"
        if kind in ("cache", "tmpfs") and "from" not in fields:
            owner = f"{fields.get('uid', '0')}:{fields.get('gid', '0')}"
            chown = f"--chown={owner} " if owner != "0:0" else ""
            return [f"COPY {chown}{MADE_DIR}/empty/ {target.rstrip('/')}/"], []
        return self._bind(stage, fields, target)

    def _bind(self, stage: Stage, fields: Mapping[str, str], target: str) -> tuple[list[str], list[str]]:
        source = fields.get("source", "/").removeprefix("./")
        if name := fields.get("from"):
            put = f"COPY --from={self._full_name(name)} {json.dumps([source, target])}"
        else:
            put = f"COPY {json.dumps([f'{TASK_DIR}/{source.lstrip("/")}', target])}"
        normal = target.rstrip("/") or "/"
        if f"{stage.workdir.rstrip('/')}/".startswith(f"{normal.rstrip('/')}/"):
            self.done.notes.append(f"what was bound to {target} stays in the image, it is the working directory")
            return [put], []
        return [put], self._as_root(stage, [f"RUN {json.dumps(['rm', '-rf', '--', normal])}"])

    def _as_root(self, stage: Stage, lines: Sequence[str]) -> list[str]:
        if stage.user in ("", "root", "0"):
            return list(lines)
        return ["USER root", *lines, f"USER {stage.user}"]


def _makes_files(instruction: Instruction) -> bool:
    copies_heredoc = bool(instruction.heredocs) and instruction.keyword != "RUN"
    return copies_heredoc or any(flag.startswith("--mount=") for flag in instruction.flags)


def _heredoc_command(shell: tuple[str, ...], instruction: Instruction) -> str:
    """The command as a JSON list: line ends survive in it, and nothing has to be copied into the image."""
    heredocs = instruction.heredocs
    if instruction.rest == heredocs[0].word:
        script = heredocs[0].content
        argv = ["/bin/sh", "-c", _RUN_AS_FILE, "heredoc", script] if script.startswith("#!") else [*shell, script]
    else:
        bodies = ["".join(f"{line}\n" for line in (*heredoc.lines, heredoc.name)) for heredoc in heredocs]
        script = f"{instruction.rest}\n{''.join(bodies)}"
        argv = [*shell, script]
    if len(script.encode()) > _LONGEST_SCRIPT:
        raise ImageFault(
            f"The here-document of line {instruction.line} is longer than {_LONGEST_SCRIPT} bytes.",
            fix="Put it into a file and COPY that.",
        )
    return json.dumps(argv)


def _json_list(instruction: Instruction) -> list[str]:
    try:
        words = json.loads(instruction.rest)
    except ValueError:
        words = []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or len(words) < 2:
        raise ImageFault(f"Line {instruction.line} of the Dockerfile: {instruction.keyword} has a broken JSON list.")
    return words
