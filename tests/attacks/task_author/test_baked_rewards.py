"""A reward that the image or the task's own hooks put into the verifier's directory is never a pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials import DOCKERFILE, Workplace
from tests.workplace_fixture import container_engine, image_cache, run_dir, workplace

__all__ = ["container_engine", "image_cache", "run_dir", "workplace"]

BAKED = f"{DOCKERFILE}RUN mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt\n"
HOOKS = {
    "the image": "",
    "a hook": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
    "a hook, upwards": "mkdir -p /logs/verifier; echo 1 > /logs/agent/../verifier/reward.txt",
    "a hook that stays": "nohup setsid sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' > /dev/null 2>&1 &",
}


def _task(workplace: Workplace, test: str, hook: str, artifact: str = "") -> Path:
    root = workplace.task("true", test)
    (root / "environment" / "Dockerfile").write_text(BAKED)
    settings = root / "task.toml"
    text = settings.read_text()
    if hook:
        text += f'[[verifier.collect]]\ncommand = """{hook}"""\n'
    if artifact:
        text = f'artifacts = ["{artifact}"]\n{text}'
    settings.write_text(text)
    return root


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS.keys())
async def test_verifier_that_says_nothing_gives_no_reward(workplace: Workplace, hook: str) -> None:
    assert (await workplace.run(_task(workplace, "true", hook))).reward is None


@pytest.mark.parametrize("artifact", ["/logs/verifier/reward.txt", "/logs/verifier"])
async def test_artifact_of_the_verifiers_is_no_reward(workplace: Workplace, artifact: str) -> None:
    outcome = await workplace.run(_task(workplace, "true", HOOKS["a hook"], artifact))
    assert outcome.reward is None


async def test_artifact_upwards_is_refused(workplace: Workplace) -> None:
    with pytest.raises(ValueError, match=r"\.\."):
        await workplace.run(_task(workplace, "true", "", "/logs/agent/../verifier/reward.txt"))


async def test_hook_leaves_files_for_the_verifier(workplace: Workplace) -> None:
    """The harmless twin: the verifier reads what a hook wrote, and gives the reward itself."""
    test = "cp /app/state /logs/verifier/reward.txt"
    assert (await workplace.run(_task(workplace, test, "echo 0.5 > /app/state"))).reward == 0.5
