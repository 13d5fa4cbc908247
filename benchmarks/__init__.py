"""The numbers Seatrial promises, measured side by side with a peer in one run by ``python -m benchmarks``.

Each module measures one thing and returns ``Row``s. Nothing in here is imported by the package.
"""
