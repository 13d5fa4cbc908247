"""The sandboxes' network: a router namespace per process, its packet filter and name server."""
