"""The parts of reading and mapping a Terminal-Bench 1 task; ``tasks_terminalbench1`` puts them together."""
