"""Server-sent events: one reader of the store for all listeners, one stream per client."""
