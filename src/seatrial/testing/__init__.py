"""In-memory fakes of the ports, a scripted model server and a private PostgreSQL, for tests."""
