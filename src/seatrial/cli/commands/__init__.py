"""One module per command: it parses, calls the backend and prints."""
