"""The gate for model calls: one per worker, with a door per trial. See ``docs/decisions/one-gate.md``."""
