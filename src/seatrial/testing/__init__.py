"""In-memory fakes of the ports and real servers in miniature, for our tests and for users' own."""
