"""The path under which a blob's key is stored, in a folder and in a bucket.

A name with ``#`` in it is an unfinished file, in ours and in obstore's writing, so that sign is escaped.
"""

from __future__ import annotations

from seatrial.ports.blobs import checked_key


def path_of(key: str) -> str:
    return checked_key(key).replace("%", "%25").replace("#", "%23")


def key_of(path: str) -> str:
    return path.replace("%23", "#").replace("%25", "%")
