"""Wakes the workers of all machines through Celery on Redis, and shows their trials to Celery's tools.

A message is a hint that there is a trial to claim. The store decides which one: a message that is lost, repeated or
stale changes nothing. A running trial is shown as an active task of its worker, whatever message woke it.
"""
