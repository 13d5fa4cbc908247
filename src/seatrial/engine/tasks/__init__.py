"""The task library and tasks by name."""
