"""A container engine, and each sandbox of ours in turn."""

from __future__ import annotations

from tests.workplace_fixture import container_engine, run_dir, workplace

__all__ = ["container_engine", "run_dir", "workplace"]
