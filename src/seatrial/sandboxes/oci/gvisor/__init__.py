"""The ``oci`` sandbox with gVisor (``runsc``) as its runtime: a kernel of its own between the sandbox and the machine.

``pod`` is the sandbox, ``runsc`` the calls, ``spec`` what its containers are told, ``inside`` the scripts by which
processes are found and killed, ``programs`` two small programs that every sandbox contains, ``probe`` the doctor's.
"""
