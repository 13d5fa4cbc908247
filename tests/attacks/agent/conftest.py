"""Fixtures of the attacks by an agent, on each sandbox of ours."""

from __future__ import annotations

from tests.workplace_fixture import container_engine, image_cache, make, run_dir, workplace

__all__ = ["container_engine", "image_cache", "make", "run_dir", "workplace"]
