"""What goes over the wire: the native API answers with these shapes, the Python client reads them.

They know the domain and the engine's values, and nothing of servers or clients.
"""
