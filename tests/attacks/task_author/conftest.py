"""Fixtures for builds: a store with a Debian base, and environments to build."""

from __future__ import annotations

from tests.integration.images.conftest import counter, images, options, warm, write

__all__ = ["counter", "images", "options", "warm", "write"]
