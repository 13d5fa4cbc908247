"""Harbor behind the runner port, in this process. Besides the sandboxes and agents, only this package runs Harbor.

``runner.py`` runs a try; ``config.py`` turns an order into Harbor's configuration, ``equip.py`` gives the agent its
model, ``equipment.py`` is what the agent gets, ``spending.py`` says what its calls may cost, ``outcome.py`` turns
Harbor's result into ours, ``tests_found.py`` reads per-test results, ``watch.py`` reports progress,
``library_trial.py`` creates trials of tasks that were read before, and ``process.py`` prepares a worker's process for
untrusted tasks.
"""
