"""A provider's key and address as people keep them: in ``.env``, under the names that LiteLLM gives them."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from seatrial.scripted_models.server import ScriptedModels
from tests.command_line import SAMPLES, CommandLine

KEY = "sk-kept-in-a-file-0123456789"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("prefix", "model"),
    [("OPENAI", "openai/solve-read-the-screen"), ("OPENROUTER", "openrouter/openai/solve-read-the-screen")],
)
async def test_the_model_is_called_where_the_env_file_says(cli: CommandLine, prefix: str, model: str) -> None:
    async with ScriptedModels(key=KEY) as models:
        (cli.directory / ".env").write_text(f"{prefix}_API_KEY={KEY}\n{prefix}_API_BASE={models.base_url}\n")
        command = cli.start("run", SAMPLES / "read-the-screen", "-a", "terminus-2", "-m", model)
        ended = await asyncio.to_thread(command.wait)
    assert ended.status == 0, ended.err
    assert cli.count(outcome="passed") == 1
    assert models.calls >= 5
    assert {call.headers["authorization"] for call in models.requests} == {
        f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
    }
