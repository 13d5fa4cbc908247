"""What one sandbox may use of the services and tables that it shares with others on this machine.

The router's packet filter enforces the numbers of packets and connections, the name server the rest. They are far above
what honest programs need, and so low that a few hundred sandboxes at their limits leave room for the others.

A connection that has ended stays in the machine's table of connections for two minutes, so at 100 new ones a second a
sandbox holds at most about 14,000 of the usual 262,144 entries.
"""

from __future__ import annotations

from seatrial.domain.frozen import Frozen


class NetworkLimits(Frozen):
    """For each sandbox."""

    connections: int = 2048
    """Open or half-open at once, of every protocol; more are refused."""
    new_connections_per_sec: int = 100
    new_connections_burst: int = 1000
    questions_per_sec: int = 200
    """Datagrams to the name server; more are dropped, as a slow network would, and programs ask again."""
    questions_burst: int = 400
    question_streams: int = 16
    """Connections to the name server; more are closed at once."""
    question_bytes: int = 4096
    questions_at_once: int = 128
    answers_kept: int = 256
    """Answers in the cache that all sandboxes share."""
    refusals_per_sec: int = 1000
    """Packets that are answered with an error; more are dropped."""
    crowded: int = 4
    """Not for each sandbox: connections that gone ones left are removed from the machine's table once one in so many
    places there is taken; 0 for always."""
