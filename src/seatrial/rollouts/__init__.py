"""Rollouts: trials driven by an external loop, such as a trainer, in Seatrial's sandboxes and with its grading.

Start in ``host.py``: ``async with RolloutHost(settings) as host`` and ``await host.open(task)``. A ``Rollout`` runs
commands, grades and is closed. ``tasks.py`` finds tasks in folders, archives and registered datasets. Nothing here
knows a training framework; ``environments/`` has a thin package for each.
"""
