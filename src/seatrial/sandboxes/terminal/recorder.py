"""Records a terminal as asciicast v2: what ``asciinema rec`` does, for images that have neither asciinema nor Python.

A separate program. ``terminal.py`` copies it into the terminal kit, where the kit's interpreter runs it under the name
``asciinema``, as terminus-2 calls it. It imports little of the standard library, because the kit has to include that.

Each event is one line, written at once. So a killed recorder leaves a valid file, except for an incomplete last line,
which ``recording.repair_recording`` removes. If the file is removed, as between the steps of a multi-step task, a new
one begins.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import select
import signal
import struct
import sys
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = "2.0 (seatrial recorder)"
PIECE = 65536
LIMIT = 256 * 1024 * 1024
"""A recording stops at this size. The terminal goes on."""
USAGE = "usage: asciinema rec [--stdin] [-c COMMAND] [--overwrite] [-q] FILE\n"


def window_size(fd: int) -> tuple[int, int]:
    """Columns and rows."""
    try:
        rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return 80, 24
    return columns or 80, rows or 24


def set_window_size(fd: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))


class Cast:
    """The file. A full disk ends the recording, but not the session."""

    def __init__(self, path: str, size: tuple[int, int], env: dict[str, str]) -> None:
        self.path = path
        self.size = size
        self.env = env
        self.fd = -1
        self._begin()

    def event(self, kind: str, data: str) -> None:
        if self.fd < 0 or not data:
            return
        if not self._still_there():
            self._begin()
        elapsed = time.monotonic() - self.started
        self._write(f"[{elapsed:.6f}, {json.dumps(kind)}, {json.dumps(data)}]\n")

    def resize(self, size: tuple[int, int]) -> None:
        self.size = size
        self.event("r", f"{size[0]}x{size[1]}")

    def _begin(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.written = 0
        self.started = time.monotonic()
        header = {
            "version": 2,
            "width": self.size[0],
            "height": self.size[1],
            "timestamp": int(time.time()),
            "env": self.env,
        }
        self._write(json.dumps(header) + "\n")

    def _still_there(self) -> bool:
        try:
            here, there = os.fstat(self.fd), os.stat(self.path)  # noqa: PTH116 - pathlib is too much to carry
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)

    def _write(self, line: str) -> None:
        data = line.encode()
        if self.written + len(data) > LIMIT:
            return
        try:
            os.write(self.fd, data)
        except OSError:
            os.close(self.fd)
            self.fd = -1
        else:
            self.written += len(data)


def decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


def spawn(command: str) -> tuple[int, int]:
    """Starts the program on a new terminal. Returns its process id and this end of the terminal."""
    pid, master = os.forkpty()
    if pid == 0:
        os.environ["ASCIINEMA_REC"] = "1"
        try:
            os.execv("/bin/sh", ["/bin/sh", "-c", command])  # noqa: S606 - the shell is what is recorded
        finally:
            os._exit(127)
    return pid, master


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def relay(master: int, cast: Cast, keep_input: bool) -> None:
    """Copies bytes between the two terminals until the inner one ends, and records them.

    Typed bytes wait here until the inner terminal takes them. A blocking write would stop the reading of output, and
    with a long paste both sides would wait for each other forever."""
    resized, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(master, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGWINCH, lambda *_: None)
    shown, typed = decoder(), decoder()
    waiting = b""
    open_input = True
    while True:
        sources = [master, resized, *([0] if open_input and len(waiting) < PIECE else [])]
        ready, takes, _ = select.select(sources, [master] if waiting else [], [])
        if resized in ready:
            os.read(resized, 1024)
            set_window_size(master, window_size(0))
            cast.resize(window_size(0))
        if master in ready:
            try:
                data = os.read(master, PIECE)
            except BlockingIOError:
                continue
            except OSError:  # EIO: the last program on the inner terminal has ended
                data = b""
            if not data:
                return
            write_all(1, data)
            cast.event("o", shown.decode(data))
        if 0 in ready:
            data = os.read(0, PIECE)
            open_input = bool(data)
            waiting += data
            if keep_input:
                cast.event("i", typed.decode(data))
        if master in takes:
            try:
                waiting = waiting[os.write(master, waiting) :]
            except BlockingIOError:
                continue
            except OSError:
                return


def raw(fd: int) -> list[Any] | None:
    """Passes every key through, those that were typed before, too. Returns the settings that restore the terminal."""
    if not os.isatty(fd):
        return None
    before = termios.tcgetattr(fd)
    mode = termios.tcgetattr(fd)
    mode[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
    mode[1] &= ~termios.OPOST
    mode[2] = (mode[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    return before


def record(path: str, command: str, keep_input: bool, quiet: bool) -> int:
    size = window_size(0)
    env = {name: os.environ[name] for name in ("SHELL", "TERM") if name in os.environ}
    cast = Cast(path, size, env)
    if not quiet:
        os.write(1, f"Recording to {path}; ctrl-d or 'exit' ends it.\r\n".encode())
    pid, master = spawn(command)
    set_window_size(master, size)
    before = raw(0)
    try:
        relay(master, cast, keep_input)
    finally:
        if before is not None:
            termios.tcsetattr(0, termios.TCSANOW, before)
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        os.write(1, f"asciinema {VERSION}\n".encode())
        return 0
    if not arguments or arguments[0] != "rec":
        os.write(2, USAGE.encode())
        return 2
    command = os.environ.get("SHELL") or "/bin/sh"
    path, keep_input, quiet = "", False, False
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--stdin":
            keep_input = True
        elif argument in ("-q", "--quiet"):
            quiet = True
        elif argument in ("-c", "--command"):
            command = next(rest, command)
        elif not argument.startswith("-"):
            path = argument
    if not path:
        os.write(2, USAGE.encode())
        return 2
    return record(path, command, keep_input, quiet)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
