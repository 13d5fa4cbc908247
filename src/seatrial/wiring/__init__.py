"""Chooses the adapter for each port. No other package knows adapters.

The entry points call ``open_installation``, which does not import Harbor. ``make_worker`` adds what runs trials.
"""

from __future__ import annotations

from seatrial.wiring.installation import (
    Installation,
    admission_of,
    ceilings_of,
    claim_blobs,
    open_installation,
    task_readers,
)
from seatrial.wiring.machine import Machine, leave_machine, machine_of
from seatrial.wiring.tools import (
    backup_database,
    celery_tools,
    examine_sandboxes,
    images_of,
    import_dataset,
    kits_of,
    layers_of,
    model_names,
    restore_database,
    unpack_archive,
)
from seatrial.wiring.upkeep import (
    clean_leftovers,
    clean_network,
    final_states_of,
    fleet_signals,
    recover_in_background,
    recover_lost,
)
from seatrial.wiring.worker import Place, assemble_worker, load_worker, make_worker

__all__ = [
    "Installation",
    "Machine",
    "Place",
    "admission_of",
    "assemble_worker",
    "backup_database",
    "ceilings_of",
    "celery_tools",
    "claim_blobs",
    "clean_leftovers",
    "clean_network",
    "examine_sandboxes",
    "final_states_of",
    "fleet_signals",
    "images_of",
    "import_dataset",
    "kits_of",
    "layers_of",
    "leave_machine",
    "load_worker",
    "machine_of",
    "make_worker",
    "model_names",
    "open_installation",
    "recover_in_background",
    "recover_lost",
    "restore_database",
    "task_readers",
    "unpack_archive",
]
