"""The environment for the taskset: one agent with only the sandbox's tool; removes all sandboxes.

Other environments of verifiers work with the taskset too. Then sandboxes of failed rollouts are removed when the
task's time is over, or with the process.
"""

import asyncio
from collections.abc import Callable

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarnessConfig

from terminalbench.open_rollouts import close_rollouts, shared_rollouts


class TerminalBenchEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())
    """A harness without tools, on this machine: the model's commands run only in the sandbox."""


class TerminalBenchEnv(vf.SingleAgentEnv, vf.Env[TerminalBenchEnvConfig]):
    async def run_episode(
        self,
        task: vf.Task,
        ctx: vf.ModelContext,
        *,
        on_trace: Callable[[vf.Trace], None] | None = None,
        on_discard: Callable[[vf.Trace], None] | None = None,
    ) -> vf.Episode:
        """Runs the episode, then removes its sandboxes, however it ended."""
        minted: list[str] = []

        def note(trace: vf.Trace) -> None:
            minted.append(trace.id)
            if on_trace is not None:
                on_trace(trace)

        try:
            return await super().run_episode(task, ctx, on_trace=note, on_discard=on_discard)
        finally:
            rollouts = shared_rollouts(self.taskset.config.task.rules)
            await asyncio.gather(*(rollouts.end(trace) for trace in minted))

    async def stop(self) -> None:
        await close_rollouts(self.taskset.config.task.rules)
