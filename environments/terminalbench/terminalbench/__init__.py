"""Terminal-Bench for verifiers 0.4: ``vf-eval terminalbench --env.taskset.tasks <folder> …``.

Exports the taskset and its environment; verifiers finds both by their classes. For verifiers 0.3 see
``vf_terminalbench.py`` beside this package.
"""

from terminalbench.env import TerminalBenchEnv
from terminalbench.taskset import TerminalBenchTaskset

__all__ = ["TerminalBenchEnv", "TerminalBenchTaskset"]
