"""A task as files: what belongs to it, its digest, where tasks are found, and how one is packed.

Shared by the adapters, which read tasks on the server, and by the client, which sends them there."""
