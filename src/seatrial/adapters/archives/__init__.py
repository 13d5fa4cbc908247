"""Archives of tasks: unpacks untrusted ones safely, and packs tasks reproducibly."""

from seatrial.adapters.archives.rules import ArchiveLimits, Rule
from seatrial.adapters.archives.unpack import ArchiveFiles, unpack
from seatrial.task_content.pack import pack

__all__ = ["ArchiveFiles", "ArchiveLimits", "Rule", "pack", "unpack"]
