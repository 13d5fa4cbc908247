"""An agent that ends its own processes ends its run, and its work is graded.

Sandboxes raise ``OwnProcessesKilled`` in the agent's view when nothing can be run there any more because the agent
ended what its commands need: with ``kill -9 -1``, or by ending the terminal that it works in. It is not
a sandbox fault: Harbor treats it as an agent that failed and goes on to the verifier, which the agent cannot reach.
"""

from __future__ import annotations

from harbor.agents.installed.base import NonZeroAgentExitCodeError

_BEGINS = "tmux new-session"
_TYPES = "tmux send-keys"
_GONE = ("no server running", "server exited", "lost server", "can't find", "no current", "error connecting")


class OwnProcessesKilled(NonZeroAgentExitCodeError):
    """The agent ended processes that its own commands need."""

    def __init__(self, what: str = "The agent ended every process of its own sandbox, so its run is over.") -> None:
        super().__init__(what)


class TerminalWatch:
    """Distinguishes a terminal that the agent ended from one that never started."""

    def __init__(self) -> None:
        self._began = False

    def judge(self, command: str, return_code: int, said: str) -> None:
        """Raises ``OwnProcessesKilled`` if keys cannot be typed because the terminal is gone."""
        if _BEGINS in command and return_code == 0:
            self._began = True
        elif self._began and _TYPES in command and return_code and any(words in said for words in _GONE):
            raise OwnProcessesKilled("The agent ended the terminal that it works in, so its run is over.")
