"""One task: where it runs, and how it is graded.

Errors of sandbox and grader are raised, and verifiers records them on the trace: such a rollout has no reward.
"""

import verifiers.v1 as vf
from seatrial.errors import SeatrialError, VerifierFault
from seatrial.rollouts.graded import Graded
from seatrial.rollouts.tasks import FoundTask
from verifiers.v1.utils.loaders import harness_class

from terminalbench.config import Place, TerminalBenchTaskConfig
from terminalbench.in_runtime import grade_in_runtime, own_environment
from terminalbench.open_rollouts import shared_rollouts
from terminalbench.state import TerminalBenchState

NOTES = "terminalbench"
"""Key of the verdict in ``trace.info``: tests, rewards, marks, the tests' output, and the agent's."""


class TerminalBenchData(vf.TaskData):
    found: FoundTask
    place: Place = "sandbox"
    category: str = ""
    difficulty: str = ""
    tags: tuple[str, ...] = ()


class TerminalBenchTask(vf.Task[TerminalBenchData, TerminalBenchState, TerminalBenchTaskConfig]):
    @property
    def key(self) -> str:
        """The task's content, independent of its position in the folder."""
        return self.data.found.task.digest

    def runtime_env(self) -> dict[str, str]:
        return own_environment(self.data.found) if self.data.place == "runtime" else {}

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        if self.data.place == "runtime":
            return
        _refuse_host_shell(trace, runtime)
        try:
            ticket = await shared_rollouts(self.config.rules).open(trace.id, self.data.found)
        except SeatrialError as fault:
            raise vf.SandboxError(f"{type(fault).__name__}: {fault}") from fault
        trace.state.socket, trace.state.rollout = ticket.socket, ticket.rollout

    @vf.stop
    async def sandbox_broken(self, trace: vf.Trace) -> bool:
        return bool(trace.state.fault)

    @vf.stop
    async def out_of_time(self, trace: vf.Trace) -> bool:
        return bool(trace.state.out_of_time)

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Grades while the sandbox still exists."""
        rollouts = shared_rollouts(self.config.rules)
        try:
            if self.data.place == "runtime":
                graded = await grade_in_runtime(self.data.found, runtime)
            else:
                graded = await rollouts.grade(trace.id)
        except VerifierFault as fault:
            raise vf.TaskError(f"{type(fault).__name__}: {fault}") from fault
        except SeatrialError as fault:
            raise vf.SandboxError(f"{type(fault).__name__}: {fault}") from fault
        finally:
            trace.info[NOTES] = {"agent_output": "\n".join(rollouts.transcript(trace.id))}
            await rollouts.end(trace.id)
        trace.info[NOTES] |= _notes(graded)

    @vf.reward(weight=1.0)
    async def solved(self, trace: vf.Trace) -> float:
        """1.0 if every test passes, otherwise 0.0."""
        return float(trace.info[NOTES]["score"])

    @vf.metric
    async def tests_passed(self, trace: vf.Trace) -> float:
        return float(sum(test["status"] == "passed" for test in trace.info[NOTES]["tests"]))


def _notes(graded: Graded) -> dict[str, object]:
    return {
        "score": graded.score,
        "rewards": graded.rewards,
        "tests": [test.model_dump(mode="json") for test in graded.tests],
        "marks": [mark.value for mark in graded.marks],
        "test_output": graded.verifier_output,
    }


def _refuse_host_shell(trace: vf.Trace, runtime: vf.Runtime) -> None:
    """A harness with its own shell would run it on this machine, outside of the sandbox."""
    harness = trace.agent.config.harness
    if harness is not None and runtime.type == "subprocess" and harness_class(harness.id).EXECUTES_CODE:
        raise ValueError(
            f"The harness {harness.id!r} would run the model's commands on this machine. Use --env.agent.harness.id "
            "null for the sandbox, or --env.taskset.place runtime with a container runtime."
        )
