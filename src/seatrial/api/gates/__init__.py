"""Checks that a request passes before it reaches a route: keys, limits, origin, identity, disk space."""
