"""The daemonless sandbox's machinery: containers over an overlay, limits, threads with their own mount namespace."""
