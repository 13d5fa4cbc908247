"""Additions to Harbor's agents: retries of model calls, options, and an agent that installs offline."""
