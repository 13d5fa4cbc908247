"""Tests against a real container engine."""

from __future__ import annotations

from tests.engine_fixture import container_engine, image_cache, run_dir

__all__ = ["container_engine", "image_cache", "run_dir"]
