"""The tool ``execute_commands``. One server for all rollouts of a worker; each call uses the sandbox of its rollout."""

import verifiers.v1 as vf
from seatrial.rollouts.command_socket import Ticket, ask

from terminalbench.state import TerminalBenchState


class TerminalBenchToolset(vf.Toolset[vf.SharedToolsetConfig, TerminalBenchState]):
    TOOL_PREFIX = None

    @vf.tool
    async def execute_commands(self, commands: list[str], reasoning: str = "") -> str:
        """Runs non-interactive shell commands one after another in the task's container and returns what they print.
        The working directory lasts from one command to the next. `reasoning` says why; it is for the reader only."""
        reply = await ask(Ticket(socket=self.state.socket, rollout=self.state.rollout), commands)
        self.state.fault = reply.fault
        self.state.out_of_time = reply.out_of_time
        return reply.fault or reply.answer


if __name__ == "__main__":
    TerminalBenchToolset.run()
