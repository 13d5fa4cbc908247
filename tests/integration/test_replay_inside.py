"""Record and replay through the doors of sandboxes: what one asked is answered in the next, which has another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.domain.model_calls.replay import RECORD_FILE, Replay
from seatrial.gateway.replay import CallReplay
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.scripted_models.server import ScriptedModels
from tests.gate_doors import KEY, OpenDoor, open_door, route
from tests.workplace_fixture import Make, container_engine, make, run_dir, workplace

__all__ = ["container_engine", "make", "run_dir", "workplace"]

CALL = """
address=URL; address=${address#http://}; place=${address%%/*}
said="root@$(hostname):/app# date; mktemp -d; WORD\\\\n$(date)\\\\n$(mktemp -d)\\\\nPID: $$"
body="{\\"model\\": \\"give-up\\", \\"messages\\": [{\\"role\\": \\"user\\", \\"content\\": \\"$said\\"}]}"
exec 3<>/dev/tcp/${place%:*}/${place#*:} || exit 1
printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %s\\r\\n\\r\\n%s' ${#body} "$body" >&3
cat <&3
"""


async def call(sandbox: Sandbox, door: OpenDoor, word: str = "ls") -> str:
    """What a program inside is told for a request that says when and where it was made."""
    told = await sandbox.exec(CALL.replace("URL", door.url).replace("WORD", word), timeout_sec=300)
    return told.stdout or ""


@pytest.mark.parametrize("word", ["ls", "rm"])
async def test_what_one_sandbox_asked_is_answered_in_the_next(make: Make, tmp_path: Path, word: str) -> None:
    folders = [tmp_path / name for name in ("recorded", "replayed")]
    for folder in folders:
        folder.mkdir()
    first = await make()
    async with ScriptedModels(key=KEY) as models:
        way = route(models.base_url, "openai/give-up")
        async with open_door(folders[0], way, namespace=first.network_namespace, full=True) as door:
            recorded = await call(first, door)
    assert recorded.startswith("HTTP/1.1 200") and models.calls == 1

    second = await make()
    replay = await CallReplay.open(Replay(trial=7), folders[0] / RECORD_FILE)
    keyless = route(models.base_url, "openai/give-up", None)
    async with open_door(folders[1], keyless, namespace=second.network_namespace, replay=replay) as door:
        told = await call(second, door, word)
    [noted] = door.noted()
    if word == "ls":
        assert told.startswith("HTTP/1.1 200") and (noted.replayed, noted.cost_usd) == (True, 0.0)
    else:
        assert told.startswith("HTTP/1.1 404") and "ls" in noted.error and "rm" in noted.error and not noted.replayed
