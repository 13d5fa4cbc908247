"""Fixtures of the fault tests: the same faults on each sandbox of ours."""

from __future__ import annotations

from tests.workplace_fixture import container_engine, image_cache, make, run_dir, workplace

__all__ = ["container_engine", "image_cache", "make", "run_dir", "workplace"]
