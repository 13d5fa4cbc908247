"""What Harbor's agents need besides Harbor: patience with models, options, and an agent that installs offline."""
