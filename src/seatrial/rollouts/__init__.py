"""Rollouts: attempts that somebody else's loop drives, such as a trainer's, on our sandboxes and with our grading.

``room.py`` is where to come in: ``async with RolloutHost(settings) as room`` and ``await room.open(task)``. A
``Rollout`` runs commands, grades and is closed. ``tasks.py`` finds tasks in folders, archives and registered datasets.
Nothing in here knows a training framework; ``environments/`` has one package for each, which is thin.
"""
