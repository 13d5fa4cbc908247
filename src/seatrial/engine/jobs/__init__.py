"""Use cases about jobs: request, plan, estimate, submit, keys, removal."""
