"""What one sandbox may use of the services and tables that it shares with others on this machine.

The packet filter enforces the limits of packets and connections, the name server the rest. Honest programs need far
less, and a few hundred sandboxes at their limits leave room for the others.

A connection that has ended stays in the machine's table of connections for two minutes, so with 100 new ones per second
a sandbox holds at most about 14,000 of the usual 262,144 entries.
"""

from __future__ import annotations

from seatrial.domain.frozen import Frozen


class NetworkLimits(Frozen):
    """For each sandbox."""

    connections: int = 2048
    """Open or half-open at once, of all protocols. More are refused."""
    new_connections_per_sec: int = 100
    new_connections_burst: int = 1000
    questions_per_sec: int = 200
    """Datagrams to the name server. More are dropped, as on a slow network, and programs ask again."""
    questions_burst: int = 400
    question_streams: int = 16
    """Connections to the name server. More are closed at once."""
    question_bytes: int = 4096
    questions_at_once: int = 128
    answers_kept: int = 256
    """Answers in the cache that all sandboxes share."""
    refusals_per_sec: int = 1000
    """Packets that are answered with an error. More are dropped."""
    crowded: int = 4
    """For the machine, not for each sandbox: connections of removed sandboxes are deleted from its table of connections
    once 1/``crowded`` of the table is used. 0 deletes them always."""
