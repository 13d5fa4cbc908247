"""The HTTP service: the REST API, live events, and the TBench Runner and AgentCompass APIs. Started by ``seatrial
up``."""
