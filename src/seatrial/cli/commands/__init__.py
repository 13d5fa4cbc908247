"""One module for each command: it parses, calls the backend and prints."""
