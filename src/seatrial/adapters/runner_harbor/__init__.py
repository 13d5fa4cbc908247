"""Harbor behind our runner port, in-process: the only room besides the sandboxes that imports Harbor.

``runner.py`` is the recipe; ``config.py`` turns an order into Harbor's configuration, ``outcome.py`` Harbor's result
into ours, ``tests_found.py`` reads per-test results, ``process.py`` prepares a worker's process for untrusted tasks.
``library_trial.py`` makes the trials of tasks that were read before; ``library_task.py`` is what was read of one.
"""
