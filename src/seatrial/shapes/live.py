"""What streams of events hold besides the domain's events and output."""

from __future__ import annotations

from seatrial.shapes.page import Shape


class Gap(Shape):
    """Some live output of a trial was dropped because it was written faster than it was read. The files contain all
    of it."""

    trial_id: int
