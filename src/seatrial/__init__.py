"""Seatrial runs Terminal-Bench tasks at scale and keeps everything that happened."""

__version__ = "0.1.0"
