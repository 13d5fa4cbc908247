"""One router for each resource of the native API, the page, and what the routers share."""
