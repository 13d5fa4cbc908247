"""Archives of tasks: unpacking hostile ones safely, packing our own reproducibly."""

from seatrial.adapters.archives.files import ArchiveFiles
from seatrial.adapters.archives.rules import ArchiveLimits, Rule
from seatrial.adapters.archives.unpack import unpack
from seatrial.task_content.pack import pack

__all__ = ["ArchiveFiles", "ArchiveLimits", "Rule", "pack", "unpack"]
