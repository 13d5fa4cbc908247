"""What both sandboxes need of this machine: mounts, file transfer, accounts, storage limits, seccomp."""
