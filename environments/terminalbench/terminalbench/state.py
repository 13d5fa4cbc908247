"""What a rollout's task and its tool know of each other while it runs."""

import verifiers.v1 as vf


class TerminalBenchState(vf.State):
    socket: str = ""
    rollout: str = ""
    """The ticket by which the tool reaches the rollout's sandbox."""
    fault: str = ""
    """What is wrong with the sandbox, if something is; ends the rollout."""
    out_of_time: bool = False
