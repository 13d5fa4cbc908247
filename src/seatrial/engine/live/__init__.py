"""Live output: what running trials write, as events."""
