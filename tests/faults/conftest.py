"""Fixtures of the fault tests: the same faults on each sandbox of ours, and in both configurations."""

from __future__ import annotations

from tests.databases import postgres_databases, postgres_server, sqlite_files
from tests.faults.configurations import _redis_numbers, configuration, redis_server
from tests.workplace_fixture import container_engine, image_cache, make, run_dir, workplace

__all__ = [
    "_redis_numbers",
    "configuration",
    "container_engine",
    "image_cache",
    "make",
    "postgres_databases",
    "postgres_server",
    "redis_server",
    "run_dir",
    "sqlite_files",
    "workplace",
]
