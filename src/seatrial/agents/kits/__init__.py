"""Agent kits: an agent with its own runtime in a read-only tree, set up once and mounted into any image.

``recipes`` says which agents have one, ``node_tree`` and ``python_tree`` build it, ``shelf`` keeps it, and ``fitting``
puts it into a sandbox in place of the agent's own installation.
"""
