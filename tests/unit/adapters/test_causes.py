"""The table of causes, held against the exceptions that Harbor and LiteLLM really have."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from seatrial import errors
from seatrial.adapters import causes
from seatrial.adapters.causes import cause_of, mark_of, voids_failure
from seatrial.domain.trial import Cause, Mark, Phase


def classes_of(module: str) -> set[str]:
    """Read, not imported: LiteLLM takes seconds."""
    package, _, rest = module.partition(".")
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / (rest.replace(".", "/") + ".py")
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}


@pytest.fixture(scope="module")
def known() -> set[str]:
    harbor = ["agents.installed.base", "agents.installed.vibe", "environments.base", "environments.modal", "llms.base"]
    harbor += ["environments.singularity.singularity", "trial.errors", "verifier.verifier"]
    names = {name for module in harbor for name in classes_of(f"harbor.{module}")}
    ours = {name for name, value in vars(errors).items() if isinstance(value, type)}
    ours |= classes_of("seatrial.sandboxes.own_processes") | classes_of("seatrial.agents.model_retries")
    return names | classes_of("litellm.exceptions") | ours | {fault.__name__ for fault in faults_of_ours()}


def faults_of_ours() -> set[type[errors.TrialFault]]:
    """Every one that a sandbox can raise, found by importing them."""
    import_module("seatrial.sandboxes.oci.environment")
    import_module("seatrial.sandboxes.docker.environment")
    found, queue = set(), [errors.TrialFault]
    while queue:
        subclasses = queue.pop().__subclasses__()
        found.update(subclasses)
        queue += subclasses
    return found


def test_every_fault_of_ours_is_in_the_table() -> None:
    assert {fault.__name__: cause_of(fault.__name__) for fault in faults_of_ours()} == {
        fault.__name__: Cause(fault.cause) for fault in faults_of_ours()
    }


def test_every_name_in_the_table_exists(known: set[str]) -> None:
    assert set(causes._CAUSES) - known == set()


@pytest.mark.parametrize("module", ["trial.errors", "verifier.verifier", "llms.base", "agents.installed.base"])
def test_no_exception_of_harbor_is_missing(module: str) -> None:
    raised = {name for name in classes_of(f"harbor.{module}") if name.endswith("Error")}
    assert raised - set(causes._CAUSES) == set()


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("RateLimitError", Cause.LLM),
        ("ModelFault", Cause.LLM),
        ("ApiOverloadedError", Cause.LLM),
        ("AuthenticationError", Cause.LLM),
        ("VerifierTimeoutError", Cause.VERIFIER),
        ("RewardFileNotFoundError", Cause.VERIFIER),
        ("EnvironmentStartTimeoutError", Cause.SANDBOX),
        ("HealthcheckError", Cause.SANDBOX),
        ("SandboxFault", Cause.SANDBOX),
        ("ImageFault", Cause.IMAGE),
        ("SandboxBuildFailedError", Cause.IMAGE),
        ("AgentTimeoutError", Cause.AGENT),
        ("ContextLengthExceededError", Cause.AGENT),
    ],
)
def test_causes(name: str, cause: Cause) -> None:
    assert cause_of(name, phase=Phase.VERIFY) is cause


@pytest.mark.parametrize("fault", errors.TrialFault.__subclasses__())
def test_our_own_faults_have_the_cause_they_say(fault: type[errors.TrialFault]) -> None:
    assert cause_of(fault.__name__) == fault.cause


def test_an_unknown_exception_is_judged_by_its_phase() -> None:
    assert cause_of("KeyError", phase=Phase.START) is Cause.SANDBOX
    assert cause_of("KeyError", phase=Phase.BUILD) is Cause.IMAGE
    assert cause_of("KeyError", phase=Phase.AGENT) is Cause.AGENT
    assert cause_of("KeyError", phase=Phase.VERIFY) is Cause.VERIFIER
    assert cause_of("KeyError") is Cause.AGENT


def test_a_terminal_that_does_not_start_is_the_sandboxs_fault() -> None:
    assert cause_of("RuntimeError", "Failed to start tmux session. Error: …", Phase.AGENT_SETUP) is Cause.SANDBOX
    assert cause_of("RuntimeError", "something else", Phase.AGENT_SETUP) is Cause.AGENT


def test_marks_stand_beside_rewards_and_service_faults_void_failures() -> None:
    assert mark_of("AgentTimeoutError") is Mark.AGENT_TIMEOUT
    assert mark_of("NonZeroAgentExitCodeError") is Mark.AGENT_ERROR
    assert mark_of("VerifierTimeoutError") is None
    assert voids_failure("ApiRateLimitError")
    assert not voids_failure("NonZeroAgentExitCodeError")
    assert not voids_failure("AgentSafetyRefusalError")
