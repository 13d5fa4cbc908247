"""``python -m seatrial``: the command line without its script. ``seatrial up`` starts its workers this way."""

from __future__ import annotations

from seatrial.cli.main import main

if __name__ == "__main__":
    main()
