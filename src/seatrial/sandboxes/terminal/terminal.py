"""tmux and a recorder for any image. terminus-2 needs them and would otherwise install them.

terminus-2 runs ``tmux -V`` and ``asciinema --version``. If they are missing it calls the image's package manager, which
is slow and does not work offline. So a sandbox passes each command to ``Terminal.offer`` first, which adds the *kit*:
this machine's tmux and bash, and the recorder with its interpreter, each with libraries and loader. The image's own C
library, package manager and Python do not matter. The kit is one read-only directory, made once for each machine. It
is lent to a sandbox at ``KIT_DIR``, and uploaded where a sandbox cannot borrow it.

Both happen when an agent runs ``tmux -V``, so other trials do not change. The links on the PATH are made by the same
command that answers it, and the question for the recorder's version, which comes next, needs no command at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import py_compile
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from harbor.environments.base import ExecResult

from seatrial.errors import SandboxFault, SetupProblem
from seatrial.sandboxes.terminal import recorder
from seatrial.sandboxes.terminal.bundle import copy_libraries, interpreter, make_once, strip_symbols, wrapper

KIT_DIR = PurePosixPath("/opt/seatrial/terminal")
"""The kit's place inside every sandbox."""
TOOLS = ("tmux", "asciinema")
"""Links that ``offer`` makes in ``/usr/local/bin`` for missing tools (and ``/bin/bash`` for a missing bash)."""
PROBE = "tmux -V"
"""The first command of terminus-2."""
RECORDER_PROBE = "asciinema --version"
"""Its second command."""

_NOT_HERE, _NOT_LINKED = 64, 65
_KIT, _OWN = "kit", "own"
"""The first line of the link script says whose tmux and whose recorder are found."""

_LOCALES = ("C.utf8", "C.UTF-8", "en_US.utf8", "en_US.UTF-8")
_TMUX_CONF = """set-environment -gu LOCPATH
source-file -q /etc/tmux.conf
source-file -q "$HOME/.tmux.conf"
"""

_LINK = f"""
test -x {KIT_DIR}/bin/tmux || exit {_NOT_HERE}
test -d /tmp || mkdir -m 1777 /tmp
command -v bash >/dev/null 2>&1 || ln -sf {KIT_DIR}/bin/bash /bin/bash || exit {_NOT_LINKED}
for directory in /usr/local/bin /usr/bin; do
    for tool in {" ".join(TOOLS)}; do
        command -v $tool >/dev/null 2>&1 && continue
        mkdir -p $directory && ln -sf {KIT_DIR}/bin/$tool $directory/$tool || exit {_NOT_LINKED}
        hash -r 2>/dev/null || true
    done
done
command -v tmux >/dev/null 2>&1 || exit {_NOT_LINKED}
for tool in {" ".join(TOOLS)}; do
    test "$(command -v $tool)" -ef {KIT_DIR}/bin/$tool && printf {_KIT} || printf {_OWN}
done
echo
{PROBE}
"""

_CLOSURE = """
import json, sys
import encodings.ascii, encodings.latin_1, encodings.utf_8
exec(compile(open(sys.argv[1]).read(), "recorder", "exec"), {"__name__": "recorder"})
found = {name: module.__spec__.origin for name, module in sys.modules.items() if getattr(module, "__spec__", None)}
print(json.dumps({name: getattr(sys.modules[name], "__file__", None) or "" for name in found}))
"""


class Commands(Protocol):
    """The part of a Harbor environment that is used here."""

    async def exec(self, command: str, *, user: str | int | None = None) -> ExecResult: ...

    async def lend(self, directory: Path, place: str) -> bool: ...

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None: ...


class Terminal:
    """The terminal of one sandbox."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._provided = False
        self.tmux_is_of_kit = False
        self._recorder_is_next = False
        """The kit's recorder was linked a moment ago, and no command has run since."""

    async def offer(self, sandbox: Commands, command: str, *, as_root: bool = True) -> ExecResult | None:
        """Links the kit's tools if the image lacks them, the first time that an agent runs ``tmux -V``.

        Call it with each command before it runs. Returns the command's result where it is known then. Raises
        ``SetupProblem`` if this machine cannot make a kit."""
        recorder_is_next, self._recorder_is_next = self._recorder_is_next, False
        if recorder_is_next and as_root and command == RECORDER_PROBE:
            return ExecResult(stdout=f"asciinema {recorder.VERSION}\n", stderr="", return_code=0)
        if self._provided or command != PROBE:
            return None
        self._provided = True
        result = await self._linked(sandbox)
        if result.return_code in (_NOT_HERE, _NOT_LINKED):
            raise SandboxFault(f"The terminal kit could not be linked: {result.stderr or result.stdout or ''}".strip())
        whose, _, said = (result.stdout or "").partition("\n")
        self.tmux_is_of_kit = whose.startswith(_KIT)
        self._recorder_is_next = whose.endswith(_KIT)
        return result.model_copy(update={"stdout": said}) if as_root else None

    async def _linked(self, sandbox: Commands) -> ExecResult:
        kit = await asyncio.to_thread(TerminalKit.prepare, self._cache)
        await sandbox.lend(kit.directory, str(KIT_DIR))
        result = await sandbox.exec(_LINK, user="root")
        if result.return_code == _NOT_HERE:
            await sandbox.upload_dir(kit.directory, str(KIT_DIR))
            result = await sandbox.exec(_LINK, user="root")
        return result


@dataclass(frozen=True, slots=True)
class TerminalKit:
    """A directory for ``KIT_DIR``. It does not change once it is made."""

    directory: Path

    @classmethod
    def prepare(cls, cache: Path) -> TerminalKit:
        """The kit of this machine, made on first use in less than a second. Blocking: call it in a thread."""
        sources = _Sources.found()
        return cls(make_once(cache / "terminal" / sources.digest, lambda kit: _build(sources, kit)))


@dataclass(frozen=True, slots=True)
class _Sources:
    """The programs of this machine for a kit."""

    tmux: Path
    bash: Path
    python: Path
    recorder: Path

    @classmethod
    def found(cls) -> _Sources:
        origin = importlib.util.find_spec(recorder.__name__)
        assert origin is not None and origin.origin is not None
        return cls(tmux=_program("tmux"), bash=_program("bash"), python=interpreter(), recorder=Path(origin.origin))

    @property
    def digest(self) -> str:
        """Changes with each of the programs. Made from names, sizes and times, because that is quick."""
        facts = [sys.version, self.recorder.read_text(), Path(__file__).read_text()]
        for program in (self.tmux, self.bash, self.python):
            status = program.stat()
            facts.append(f"{program} {status.st_size} {status.st_mtime_ns}")
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise SetupProblem(
            f"terminus-2 needs {name}, which is not installed on this machine.", fix=f"Run: apt-get install {name}"
        )
    return Path(found).resolve()


def _build(sources: _Sources, kit: Path) -> None:
    for part in ("bin", "lib", "libexec"):
        (kit / part).mkdir(parents=True)
    shutil.copy2(sources.tmux, kit / "libexec" / "tmux")
    shutil.copy2(sources.bash, kit / "libexec" / "bash")
    # The interpreter looks for its library beside its own directory.
    shutil.copy2(sources.python, kit / "bin" / "python3")
    shutil.copy2(sources.recorder, kit / "libexec" / "recorder.py")
    extensions = _copy_stdlib(sources, kit)
    copy_libraries([sources.tmux, sources.bash, sources.python, *extensions], kit / "lib")
    _copy_locale(kit)
    strip_symbols(kit.rglob("*"))
    _write_wrappers(kit)
    _check(kit)


def _copy_stdlib(sources: _Sources, kit: Path) -> list[Path]:
    """Copies and compiles what the recorder imports. Returns the extension modules."""
    command = [str(sources.python), "-I", "-S", "-c", _CLOSURE, str(sources.recorder)]
    modules: dict[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    origins = {Path(file) for file in modules.values() if file} - {sources.recorder}
    library = kit / sys.platlibdir / f"python{sys.version_info.major}.{sys.version_info.minor}"
    dynload = library / "lib-dynload"
    dynload.mkdir(parents=True)
    root = Path(os.__file__).parent
    extensions = []
    for origin in origins:
        if origin.suffix == ".so":
            shutil.copy2(origin, dynload / origin.name)
            extensions.append(origin)
        elif origin.is_relative_to(root):
            copy = library / origin.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, copy)
            # The kit is read-only, so a module that is not compiled now would be compiled at each start.
            py_compile.compile(str(copy), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return extensions


def _copy_locale(kit: Path) -> None:
    """tmux does not start without a UTF-8 locale, which many images lack."""
    for name in _LOCALES:
        source = Path("/usr/lib/locale") / name / "LC_CTYPE"
        if source.is_file():
            copy = kit / "lib" / "locale" / "C.UTF-8" / "LC_CTYPE"
            copy.parent.mkdir(parents=True)
            shutil.copy2(source, copy)
            return
    raise SetupProblem("tmux needs a UTF-8 locale, and this machine has none.", fix="Run: apt-get install libc-bin")


def _write_wrappers(kit: Path) -> None:
    # The locale is only for tmux: its configuration removes it from the environment of the windows.
    (kit / "libexec" / "tmux.conf").write_text(_TMUX_CONF)
    tmux = f"libexec/tmux -u -f {KIT_DIR}/libexec/tmux.conf"
    recorder_command = f"bin/python3 -I -S -B -X utf8 {KIT_DIR}/libexec/recorder.py"
    wrappers = {
        "tmux": wrapper(KIT_DIR, tmux, argv0="tmux", environment=f"LOCPATH={KIT_DIR}/lib/locale "),
        "bash": wrapper(KIT_DIR, "libexec/bash", argv0="bash"),
        "asciinema": wrapper(KIT_DIR, recorder_command, argv0=f"{KIT_DIR}/bin/python3"),
    }
    for name, text in wrappers.items():
        (kit / "bin" / name).write_text(text)
        (kit / "bin" / name).chmod(0o755)


def _check(kit: Path) -> None:
    """Runs the kit's programs as a sandbox would, with only the kernel of this machine."""
    loader = [str(kit / "lib" / "ld.so"), "--library-path", str(kit / "lib"), "--argv0"]
    python = str(kit / "bin" / "python3")
    recorder_check = [python, "-I", "-S", "-B", "-X", "utf8", str(kit / "libexec" / "recorder.py"), "--version"]
    checks = {
        "tmux": [*loader, "tmux", str(kit / "libexec" / "tmux"), "-V"],
        "bash": [*loader, "bash", str(kit / "libexec" / "bash"), "-c", "true"],
        "the recorder": [*loader, python, *recorder_check],
    }
    environment = {"LOCPATH": str(kit / "lib" / "locale")}
    for name, command in checks.items():
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0 or done.stderr:
            raise SetupProblem(
                f"{name} of this machine does not run from the terminal kit: {done.stderr.strip()}",
                fix="A C library of version 2.35 or later is needed.",
            )
