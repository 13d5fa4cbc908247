"""Archives of tasks: unpacking hostile ones safely, packing our own reproducibly."""

from seatrial.adapters.archives.files import ArchiveFiles
from seatrial.adapters.archives.pack import pack
from seatrial.adapters.archives.rules import ArchiveLimits, Rule
from seatrial.adapters.archives.unpack import unpack

__all__ = ["ArchiveFiles", "ArchiveLimits", "Rule", "pack", "unpack"]
