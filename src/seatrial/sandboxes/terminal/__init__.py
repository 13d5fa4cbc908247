"""A terminal for any sandbox, brought from outside: tmux, its recording, bundles that need nothing of the image."""
