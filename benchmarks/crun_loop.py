"""An ``oci`` trial against a bare crun loop: an overlay, ``crun run``, the same commands, ``crun delete``.

What Harbor asks of the sandbox is recorded in one real trial and written into a shell script; files are plain copies.
The loop has no limits, no seccomp filter, no network, no second container for grading and no harness around it.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any, override

from harbor.environments.base import ExecResult

from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, within
from benchmarks.trials import OCI, our_subject, run_trial, seconds_for
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.oci.environment import OciEnvironment

_CRUN = "crun --root $PWD/state --cgroup-manager=disabled"
# crun 1.8 does not start where it sees both versions of cgroups.
_ALONE = "umount /sys/fs/cgroup/unified 2>/dev/null; "


class RecordedOci(OciEnvironment):
    """Notes what Harbor asks for, as lines of the script."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.script: list[str] = []
        super().__init__(*args, **kwargs)

    @property
    def image(self) -> Image:
        assert self._image is not None
        return self._image

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        self.script.append(_exec(command, self._absolute(cwd or ""), self._merge_env(env) or {}))
        return await super().exec(command, cwd, env, timeout_sec, user)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self.script.append(_copy(f"{source_path}", f"merged{target_path}"))
        await super().upload_file(source_path, target_path)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        self.script.append(_copy(f"{source_dir}/.", f"merged{target_dir}/"))
        await super().upload_dir(source_dir, target_dir)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        self.script.append(_copy(f"merged{source_path}", "out/"))
        await super().download_file(source_path, target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        self.script.append(_copy(f"merged{source_dir}/.", "out/"))
        await super().download_dir(source_dir, target_dir)


async def measure(place: Place) -> list[Row]:
    subject = our_subject(place, "oci", OCI, TRIVIAL, place.options())
    recorded = our_subject(place, "oci", "benchmarks.crun_loop:RecordedOci", TRIVIAL, place.options())
    sandbox = (await run_trial(place, recorded)).agent_environment
    assert isinstance(sandbox, RecordedOci)
    loop = CrunLoop(place, sandbox.image, sandbox.script)
    rows = []
    for at_once, count in ((1, place.count(20, 5)), (20, place.count(100, 40))):
        ours = await seconds_for(place, subject, count, at_once)
        bare = await loop.seconds_for(count, at_once)
        where = "alone" if at_once == 1 else f"{at_once} at once"
        rows.append(within(f"oci trial, {where}", ours / count, "bare crun loop", bare / count, 2.0))
    return rows


class CrunLoop:
    """The peer: shell scripts under ``xargs``, in one mount namespace that ends with them."""

    def __init__(self, place: Place, image: Image, script: list[str]) -> None:
        self._place = place
        self._layers = ":".join(str(layer) for layer in image.layers)
        self._workdir = image.config.workdir or "/"
        self._script = script

    async def seconds_for(self, count: int, at_once: int) -> float:
        folder = self._place.folder("crun")
        (folder / "loop.sh").write_text(self._text())
        for number in range(count):
            self._bundle(folder / str(number))
        command = f"{_ALONE} seq 0 {count - 1} | xargs -P {at_once} -I@ sh {folder}/loop.sh {folder}/@"
        started = time.perf_counter()
        done = await _shell(command)
        seconds = time.perf_counter() - started
        rewards = [(folder / str(number) / "out" / "reward.txt") for number in range(count)]
        passed = sum(path.exists() and path.read_text().strip() == "1" for path in rewards)
        if passed != count:
            raise RuntimeError(f"The bare crun loop passed {passed} of {count}:\n{done[-2000:]}")
        return seconds

    def _text(self) -> str:
        return "\n".join(
            (
                "set -e; cd $1; id=bare-$$; mkdir upper work merged out",
                f"mount -t overlay overlay -o lowerdir={self._layers},upperdir=upper,workdir=work merged",
                f"mkdir -p merged/logs/agent merged/logs/verifier merged/logs/artifacts merged{self._workdir}",
                f"{_CRUN} run --detach --bundle . $id </dev/null >/dev/null 2>err",
                *self._script,
                f"{_CRUN} delete --force $id; umount merged; rm -rf upper work",
            )
        )

    def _bundle(self, folder: Path) -> None:
        """crun's own default, with a root that can be written and a first process that waits."""
        folder.mkdir()
        subprocess.run(["crun", "spec"], cwd=folder, check=True)
        spec = json.loads((folder / "config.json").read_text())
        spec["process"].update(terminal=False, args=["sleep", "infinity"], cwd="/")
        spec["root"] = {"path": "merged", "readonly": False}
        spec["mounts"] = [mount for mount in spec["mounts"] if mount["type"] != "cgroup"]
        (folder / "config.json").write_text(json.dumps(spec))


async def _shell(command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "unshare",
        "--mount",
        "sh",
        "-c",
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode(errors="replace")


def _exec(command: str, cwd: str, env: dict[str, str]) -> str:
    values = {"PATH": DEFAULT_PATH, "HOME": "/root", **env}
    flags = " ".join(f"--env {shlex.quote(f'{name}={value}')}" for name, value in values.items())
    return f"{_CRUN} exec --cwd {cwd} {flags} $id bash -c {shlex.quote(command)} </dev/null || true"


def _copy(source: str, target: str) -> str:
    """What is not there is nothing to copy; Harbor asks for some files that a task may not have."""
    folder = str(Path(target + "_").parent)
    return f"mkdir -p {shlex.quote(folder)}; cp -r {shlex.quote(source)} {shlex.quote(target)} 2>/dev/null || true"
