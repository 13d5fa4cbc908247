"""The two contracts that people already use, held against a real server. Written from their tables alone."""
