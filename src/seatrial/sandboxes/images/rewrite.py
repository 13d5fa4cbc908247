"""Turns a Dockerfile into one that all builders read alike and that a hostile task cannot use for an attack.

Each instruction is understood or refused. ``canonical`` writes those that are understood. Variables get their values,
here-documents become ``RUN ["sh", "-c", …]`` and generated files. ``RUN --mount`` becomes copies, because tasks
could poison shared caches, and old builders follow links of a bind's source out to the host. ``FROM`` gets full names,
and stages get new names. Pure: the files are returned.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.errors import ImageFault, Unsupported
from seatrial.sandboxes.images import references
from seatrial.sandboxes.images.canonical import assignment, command, copying, quoted
from seatrial.sandboxes.images.dockerfile import Flag, Heredoc, Instruction, parse_trigger
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.stages import Recipe, Stage, Walk, json_words, mount_fields, named_values, words_of
from seatrial.sandboxes.images.trust import Trust
from seatrial.sandboxes.images.variables import assignments

TASK_DIR = "task"
"""Folder of the context for the task's own files, if there are generated ones too."""
MADE_DIR = "made"
_LONGEST_SCRIPT = 120_000  # one argument of a process may have 128 KiB
_RUN_AS_FILE = (
    'f=$(mktemp /tmp/heredoc.XXXXXX) && printf %s "$1" >"$f" && chmod 755 "$f" && "$f"; s=$?; rm -f "$f"; exit $s'
)
FLAGS: Mapping[str, frozenset[str]] = {
    "FROM": frozenset({"platform"}),
    "RUN": frozenset({"mount", "network", "security"}),
    "COPY": frozenset({"from", "chown", "chmod", "link"}),
    "ADD": frozenset({"chown", "chmod", "link"}),
    "HEALTHCHECK": frozenset({"interval", "timeout", "start-period", "start-interval", "retries"}),
}
"""The flags of each instruction. Others take none."""
_MOUNT_FIELDS = frozenset(
    {"type", "target", "source", "from", "id", "sharing", "mode", "uid", "gid", "size", "required", "env"}
    | {"readonly", "readwrite"}
)
_OWNER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_PORT = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:/(?:tcp|udp|sctp))?", re.IGNORECASE)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*")
_OWN_LABELS = "seatrial."
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h))+|0")
_PROBE_FLAGS = ("interval", "timeout", "start-period", "retries")  # the ones that every builder knows


@dataclass(slots=True)
class Rewritten:
    text: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """Generated files by their path in the context."""
    notes: list[str] = field(default_factory=list)
    """Differences from the original, for the build's log."""
    fetches: list[str] = field(default_factory=list)
    """Addresses that the builder fetches for ``ADD``."""

    @property
    def apart(self) -> bool:
        """Whether the task's files go into ``TASK_DIR``, because there are generated ones."""
        return bool(self.files)


def rewrite(recipe: Recipe, bases: Mapping[str, ImageConfig], trust: Trust | None = None) -> Rewritten:
    writer = _Writer(recipe, bases, trust)
    lines = [line for instruction in recipe.dockerfile.instructions for line in writer.lines(instruction)]
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
        with instruction.located():
            _check_flags(instruction)
            stage = self._walk.step(instruction)
            # An ARG before the first FROM has no stage. Its value is written where it is used.
            return [] if stage is None else self._written(stage, instruction)

    def _written(self, stage: Stage, instruction: Instruction) -> list[str]:
        match instruction.keyword:
            case "FROM":
                return self._from(stage)
            case "ARG":
                return self._arg(instruction)
            case "ENV":
                names = [name for name, _ in named_values(instruction, self._escape)]
                return [assignment("ENV", name, stage.scope.env[name]) for name in dict.fromkeys(names)]
            case "COPY" | "ADD":
                return self._copy(stage, instruction)
            case "RUN":
                return self._run(stage, instruction)
            case "CMD" | "ENTRYPOINT":
                return [command(instruction.keyword, _argv(stage, instruction, instruction.rest))]
            case "SHELL":
                return [command("SHELL", stage.shell)]
            case "LABEL":
                return self._label(stage, instruction)
            case "USER":
                return [f"USER {_matching(instruction, _OWNER, stage.user)}"]
            case "WORKDIR":
                return [f"WORKDIR {quoted(_matching(instruction, re.compile('.+'), stage.workdir))}"]
            case "EXPOSE":
                ports = [
                    port for word in words_of(instruction, self._escape) for port in stage.scope.expand(word).split()
                ]
                return [" ".join(["EXPOSE", *(_matching(instruction, _PORT, port).lower() for port in ports)])]
            case "VOLUME":
                return [copying("VOLUME", (), map(stage.scope.expand, self._words(instruction)))]
            case "STOPSIGNAL":
                signal = stage.scope.expand(instruction.rest)
                return [f"STOPSIGNAL {_matching(instruction, re.compile(r'[A-Z0-9+-]+'), signal)}"]
            case "HEALTHCHECK":
                return self._healthcheck(stage, instruction)
            case "MAINTAINER":
                return [assignment("LABEL", "maintainer", instruction.rest)]
            case _:  # ONBUILD
                return self._onbuild(instruction)

    def _from(self, stage: Stage) -> list[str]:
        lines = [f"FROM {stage.parent} AS {stage.own_name}"]
        if self._trust is None or stage.parent == "scratch":
            return lines
        if stage.base is not None and not self._trust.is_in(self._bases.get(stage.base, ImageConfig())):
            lines += self._as_root(stage, self._trust.instructions(f"{MADE_DIR}/ca/"))
        return lines + [assignment("ARG", name, self._trust.bundle) for name in self._trust.variables]

    def _arg(self, instruction: Instruction) -> list[str]:
        lines = []
        for name, default in named_values(instruction, self._escape):
            value = self._walk.known_arg(name, default)
            lines.append(f"ARG {name}" if value is None else assignment("ARG", name, value))
        return lines

    def _label(self, stage: Stage, instruction: Instruction) -> list[str]:
        words_of(instruction, self._escape)
        lines = []
        for name, value in assignments(instruction.rest, self._escape):
            key = _matching(instruction, _LABEL, stage.scope.expand(name))
            if key.lower().startswith(_OWN_LABELS):
                raise instruction.refused(f"labels that begin with {_OWN_LABELS} are Seatrial's own.")
            lines.append(assignment("LABEL", key, stage.scope.value(value)))
        return lines

    def _onbuild(self, instruction: Instruction) -> list[str]:
        """Checks the instruction and leaves it out, because nothing is built on a task's image."""
        inner = parse_trigger(instruction, self._escape)
        _check_flags(inner)
        if inner.flags and inner.keyword == "RUN":
            raise instruction.refused("a RUN of ONBUILD takes no flags.")
        self.done.notes.append(f"line {instruction.line}: left out ONBUILD, since nothing is built on this image")
        return []

    def _healthcheck(self, stage: Stage, instruction: Instruction) -> list[str]:
        kind, _, rest = instruction.rest.replace("\t", " ").partition(" ")
        if kind.upper() == "NONE" and not rest and not instruction.flags:
            return ["HEALTHCHECK NONE"]
        if kind.upper() != "CMD" or not rest.strip():
            raise instruction.refused("it has to be HEALTHCHECK NONE or HEALTHCHECK [flags] CMD command.")
        flags = []
        for flag in instruction.flags:
            shape = re.compile(r"\d{1,6}") if flag.name == "retries" else _DURATION
            value = _matching(instruction, shape, stage.scope.expand(flag.value or ""))
            flags += [f"--{flag.name}={value}"] if flag.name in _PROBE_FLAGS else []
        text = instruction.rest[len(kind) :].strip()
        return [" ".join(["HEALTHCHECK", *flags, command("CMD", _argv(stage, instruction, text))])]

    def _copy(self, stage: Stage, instruction: Instruction) -> list[str]:
        flags = self._copy_flags(stage, instruction)
        made = {heredoc.word: self._file(stage, heredoc) for heredoc in instruction.heredocs}
        written = self._words(instruction)
        if len(written) < 2:
            raise instruction.refused(f"{instruction.keyword} takes at least two paths, or a JSON list of them.")
        inside = instruction.flag("from") is not None
        sources = [
            made[word] if word in made else self._source(stage, instruction, word, inside) for word in written[:-1]
        ]
        return [copying(instruction.keyword, flags, [*sources, self._path(stage, instruction, written[-1])])]

    def _copy_flags(self, stage: Stage, instruction: Instruction) -> list[tuple[str, str]]:
        flags = []
        for flag in instruction.flags:
            value = stage.scope.expand(flag.value or "")
            if flag.name == "from":
                flags.append(("from", self._full_name(value)))
            elif flag.name == "chown":
                flags.append(("chown", _matching(instruction, _OWNER, value)))
            elif flag.name == "chmod":
                flags.append(("chmod", _matching(instruction, re.compile(r"[0-7]{3,4}"), value)))
        return flags

    def _full_name(self, name: str) -> str:
        stage = self._walk.find_stage(name)
        return stage.own_name if stage is not None else str(references.parse(name))

    def _path(self, stage: Stage, instruction: Instruction, word: str) -> str:
        path = stage.scope.expand(word)
        if not path:
            raise instruction.refused(f"the path {word!r} is empty.")
        return path

    def _source(self, stage: Stage, instruction: Instruction, word: str, inside: bool) -> str:
        path = self._path(stage, instruction, word)
        if "://" in path or path.startswith("git@"):
            return self._address(instruction, path)
        if inside:
            return path
        # No number of ".." leads out of the context.
        kept = posixpath.normpath("/" + path).lstrip("/")
        folder = f"{TASK_DIR}/" if self.done.apart else ""
        whole = f"{folder}{kept}" or "."
        return f"{whole.rstrip('/')}/" if path.endswith(("/", "/.")) or path == "." else whole

    def _address(self, instruction: Instruction, path: str) -> str:
        bare = path.partition("#")[0].partition("?")[0]
        is_git = bare.endswith(".git") or not re.match(r"https?://[A-Za-z0-9\[]", path)
        if instruction.keyword != "ADD" or is_git or "@" in path.split("/")[2]:
            raise instruction.refused(
                f"{path[:80]!r} cannot be copied.",
                fix="ADD takes http and https addresses; RUN can clone a repository.",
            )
        self.done.fetches.append(path)
        return path

    def _file(self, stage: Stage, heredoc: Heredoc) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", heredoc.name) or heredoc.name in (".", ".."):
            raise ImageFault(f"{heredoc.name!r} cannot be the name of a here-document of COPY.")
        path = f"{MADE_DIR}/{len(self.done.files)}/{heredoc.name}"
        content = heredoc.content
        self.done.files[path] = stage.scope.expand(content, quotes=False) if heredoc.expands else content
        return path

    def _run(self, stage: Stage, instruction: Instruction) -> list[str]:
        before: list[str] = []
        after: list[str] = []
        for flag in instruction.flags:
            value = stage.scope.expand(flag.value or "")
            if flag.name == "mount":
                put, take = self._mount(stage, instruction, flag)
                before, after = before + put, after + take
            elif (flag.name, value) == ("network", "none"):
                self.done.notes.append(f"line {instruction.line}: RUN --network=none runs with the network on")
            elif (flag.name, value) not in (("network", "default"), ("security", "sandbox")):
                raise Unsupported(f"Line {instruction.line} of the Dockerfile asks for RUN --{flag.name}={value}.")
        if instruction.heredocs:
            argv = _heredoc_command(stage.shell, instruction)
        else:
            argv = _argv(stage, instruction, instruction.rest)
        return [*before, command("RUN", argv), *after]

    def _mount(self, stage: Stage, instruction: Instruction, flag: Flag) -> tuple[list[str], list[str]]:
        """Instructions before and after a ``RUN`` with the effect of one of its mounts."""
        found = mount_fields(instruction, flag)
        if unknown := sorted(set(found) - _MOUNT_FIELDS):
            raise instruction.refused(f"a mount has {unknown[0][:40]!r}, which is not understood.")
        fields = {name: stage.scope.expand(value) for name, value in found.items()}
        kind, target = fields.get("type", "bind"), fields.get("target", "")
        if kind in ("secret", "ssh"):
            if "required" in fields and fields["required"] not in ("false", "0"):
                raise Unsupported(f"The Dockerfile needs a {kind} at build time, but builds get no secrets.")
            self.done.notes.append(f"line {instruction.line}: left out a mount of a {kind}: builds get no secrets")
            return [], []
        if kind not in ("bind", "cache", "tmpfs"):
            raise instruction.refused(f"there is no mount of the kind {kind[:40]!r}.")
        if not target:
            raise instruction.refused("a mount has no target.")
        if not target.startswith("/"):
            target = f"{stage.workdir.rstrip('/')}/{target}"
        if kind in ("cache", "tmpfs") and "from" not in fields:
            owner = f"{fields.get('uid', '0')}:{fields.get('gid', '0')}"
            chown = [("chown", _matching(instruction, _OWNER, owner))] if owner != "0:0" else []
            return [copying("COPY", chown, [f"{MADE_DIR}/empty/", f"{target.rstrip('/')}/"])], []
        return self._bind(stage, fields, target)

    def _bind(self, stage: Stage, fields: Mapping[str, str], target: str) -> tuple[list[str], list[str]]:
        source = fields.get("source", "/")
        if name := fields.get("from"):
            put = copying("COPY", [("from", self._full_name(name))], [source, target])
        else:
            put = copying("COPY", (), [f"{TASK_DIR}/{posixpath.normpath('/' + source).lstrip('/')}", target])
        normal = target.rstrip("/") or "/"
        if f"{stage.workdir.rstrip('/')}/".startswith(f"{normal.rstrip('/')}/"):
            self.done.notes.append(f"the files bound to {target} stay in the image: it is the working directory")
            return [put], []
        return [put], self._as_root(stage, [command("RUN", ["rm", "-rf", "--", normal])])

    def _as_root(self, stage: Stage, lines: Sequence[str]) -> list[str]:
        if stage.user in ("", "root", "0"):
            return list(lines)
        if not _OWNER.fullmatch(stage.user):
            raise ImageFault(f"{stage.user[:40]!r} of the base image is not the name of a user.")
        return ["USER root", *lines, f"USER {stage.user}"]

    def _words(self, instruction: Instruction) -> list[str]:
        words = json_words(instruction)
        return words_of(instruction, self._escape) if words is None else words


def _check_flags(instruction: Instruction) -> None:
    allowed = FLAGS.get(instruction.keyword, frozenset())
    seen: set[str] = set()
    for flag in instruction.flags:
        if flag.name not in allowed or (flag.value is None and flag.name != "link"):
            raise instruction.refused(f"{instruction.keyword} --{flag.name} is not understood.")
        if flag.name in seen and flag.name != "mount":
            raise instruction.refused(f"{instruction.keyword} has --{flag.name} twice.")
        seen.add(flag.name)


def _matching(instruction: Instruction, shape: re.Pattern[str], value: str) -> str:
    if not shape.fullmatch(value):
        raise instruction.refused(f"{value[:60]!r} is not valid for {instruction.keyword}.")
    return value


def _argv(stage: Stage, instruction: Instruction, text: str) -> list[str]:
    """The command as a list. The shell form becomes the list that a builder would make of it."""
    words = json_words(instruction, text=text)
    if words is not None:
        return words
    if not text and instruction.keyword == "RUN":
        raise instruction.refused("RUN has no command.")
    return [*stage.shell, text] if text else []


def _makes_files(instruction: Instruction) -> bool:
    copies_heredoc = bool(instruction.heredocs) and instruction.keyword != "RUN"
    return copies_heredoc or any(flag.name == "mount" for flag in instruction.flags)


def _heredoc_command(shell: tuple[str, ...], instruction: Instruction) -> list[str]:
    """The command as a list. It keeps line ends, and nothing has to be copied into the image."""
    heredocs = instruction.heredocs
    if instruction.rest == heredocs[0].word:
        script = heredocs[0].content
        argv = ["/bin/sh", "-c", _RUN_AS_FILE, "heredoc", script] if script.startswith("#!") else [*shell, script]
    else:
        bodies = ["".join(f"{line}\n" for line in (*heredoc.lines, heredoc.name)) for heredoc in heredocs]
        script = f"{instruction.rest}\n{''.join(bodies)}"
        argv = [*shell, script]
    if len(script.encode(errors="replace")) > _LONGEST_SCRIPT:
        raise instruction.refused(
            f"the here-document is longer than {_LONGEST_SCRIPT} bytes.", fix="Put it into a file and COPY that."
        )
    return argv
