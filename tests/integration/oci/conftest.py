"""Fixtures for tests of the daemonless sandbox alone; what every sandbox promises is in ``tests/contracts/sandbox``."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.sandboxes.oci.leftovers import Leftovers
from tests.trials import Workplace, test_cache


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path, test_cache())


@pytest.fixture
def leftovers(workplace: Workplace) -> Leftovers:
    return Leftovers(workplace.run_dir)
