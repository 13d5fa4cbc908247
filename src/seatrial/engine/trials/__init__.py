"""Use cases about trials: execute, save files, recover, retain."""
