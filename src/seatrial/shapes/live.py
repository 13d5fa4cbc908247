"""What streams of events hold besides the domain's events and output."""

from __future__ import annotations

from seatrial.shapes.page import Shape


class Gap(Shape):
    """Live output of a trial was written faster than it was read, and its oldest pieces are gone; files have it all."""

    trial_id: int
