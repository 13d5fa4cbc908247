"""The app for Celery's own tools: ``celery -A seatrial.celery inspect active``, Flower."""

from __future__ import annotations

from seatrial.settings import Settings
from seatrial.wiring import celery_tools

app = celery_tools(Settings())
