"""The app for Celery's own tools: ``celery -A seatrial.celery inspect active``, Flower."""

from __future__ import annotations

from seatrial.adapters.wake_up_celery.app import celery_app
from seatrial.settings import Settings

app = celery_app(Settings().broker_url)
