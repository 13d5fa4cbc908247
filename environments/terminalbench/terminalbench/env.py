"""The environment that suits the taskset: one agent with nothing but the sandbox's tool, and nothing left behind.

Other environments of verifiers work with the taskset as well; then sandboxes of failed rollouts are removed when the
task's time is over, or with the process.
"""

import asyncio
from collections.abc import Callable

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarnessConfig

from terminalbench.desk import close_desks, shared_desk


class TerminalBenchEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())
    """The harness without tools of its own, on this machine: the model's commands run in the sandbox only."""


class TerminalBenchEnv(vf.SingleAgentEnv, vf.Env[TerminalBenchEnvConfig]):
    async def run_episode(
        self,
        task: vf.Task,
        ctx: vf.ModelContext,
        *,
        on_trace: Callable[[vf.Trace], None] | None = None,
        on_discard: Callable[[vf.Trace], None] | None = None,
    ) -> vf.Episode:
        """As ever; and then no sandbox of it is left, however it ended."""
        minted: list[str] = []

        def note(trace: vf.Trace) -> None:
            minted.append(trace.id)
            if on_trace is not None:
                on_trace(trace)

        try:
            return await super().run_episode(task, ctx, on_trace=note, on_discard=on_discard)
        finally:
            desk = shared_desk(self.taskset.config.task.rules)
            await asyncio.gather(*(desk.end(trace) for trace in minted))

    async def stop(self) -> None:
        await close_desks(self.taskset.config.task.rules)
