"""The docker sandbox's machinery: a container engine's API, containers, files, grading beside the agent, leftovers."""
