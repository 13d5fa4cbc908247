"""Response and request models of the native API, shared by the server and the Python client.

They depend on domain and engine values, and on neither servers nor clients.
"""
