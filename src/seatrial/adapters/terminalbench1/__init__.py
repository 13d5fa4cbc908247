"""Reads and converts the files of a Terminal-Bench 1 task. ``tasks_terminalbench1`` uses these modules."""
