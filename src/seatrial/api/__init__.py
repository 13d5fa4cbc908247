"""The service: one REST API, live events, and the two contracts that people already use. Started by ``seatrial up``."""
