"""State that a rollout's task and its tool share while it runs."""

import verifiers.v1 as vf


class TerminalBenchState(vf.State):
    socket: str = ""
    rollout: str = ""
    """The ticket with which the tool reaches the rollout's sandbox."""
    fault: str = ""
    """The sandbox's error, if any; ends the rollout."""
    out_of_time: bool = False
