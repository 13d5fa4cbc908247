"""Which commands the sandbox does by itself, without a process: only a plain ``chmod +x`` of one path."""

from __future__ import annotations

import pytest

from seatrial.sandboxes.call import script_to_allow


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("chmod +x /tests/test.sh", "/tests/test.sh"),
        ("chmod +x '/solution/a b.sh'", "/solution/a b.sh"),
        ("chmod +x relative.sh", None),
        ("chmod +x /a /b", None),
        ("chmod +x /a; rm -rf /b", None),
        ("chmod +x /a && true", None),
        ("chmod +x $HOME/a", None),
        ("chmod +x /a/*.sh", None),
        ("chmod +x '/unbalanced", None),
        ("chmod -R +x /a", None),
        ("chmod 755 /a", None),
        ("true", None),
    ],
)
def test_only_a_plain_chmod_of_one_path(command: str, path: str | None) -> None:
    assert script_to_allow(command) == path
