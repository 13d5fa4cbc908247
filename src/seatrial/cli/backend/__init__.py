"""Where a command's work is done: this machine's installation, or a service named by ``--server``."""
