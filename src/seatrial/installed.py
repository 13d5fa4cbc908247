"""Whether a class that is named by its import path, ``pkg.mod:Class``, can be found. Runs no code of a class itself."""

from __future__ import annotations

from importlib.util import find_spec


def is_installed(import_path: str) -> bool:
    """Importing the packages around the module is the only way to find it."""
    module = import_path.partition(":")[0]
    try:
        return find_spec(module) is not None
    except Exception:  # whatever the packages around it raise, nobody can use it
        return False
