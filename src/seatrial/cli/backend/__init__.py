"""Where a command runs: this machine's installation, or the service named by ``--server``."""
