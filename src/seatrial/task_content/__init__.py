"""Tasks as files: their tree, digest, discovery and packing.

Shared by the adapters, which read tasks on the server, and by the client, which uploads them.
"""
