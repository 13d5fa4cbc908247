from __future__ import annotations

import pytest

from seatrial.sandboxes.images.ignore import IgnoreRules


@pytest.mark.parametrize(
    ("rules", "path", "ignored"),
    [
        (["secret.txt"], "secret.txt", True),
        (["secret.txt"], "sub/secret.txt", False),
        (["**/secret.txt"], "sub/deep/secret.txt", True),
        (["**/secret.txt"], "secret.txt", True),
        (["*.pyc"], "a.pyc", True),
        (["*.pyc"], "sub/a.pyc", False),
        (["node_modules"], "node_modules/x/y.js", True),
        (["node_modules/"], "node_modules/x", True),
        (["/rooted"], "rooted/x", True),
        (["./rooted"], "rooted", True),
        (["*", "!keep"], "keep", False),
        (["*", "!keep"], "keep/inside", False),
        (["*", "!keep"], "other", True),
        (["*", "!keep/*.txt"], "keep/a.txt", False),
        (["*", "!keep/*.txt"], "keep/a.bin", True),
        (["!keep", "*"], "keep", True),
        (["a?c"], "abc", True),
        (["a?c"], "abbc", False),
        (["[ab].txt"], "b.txt", True),
        (["[^ab].txt"], "b.txt", False),
        (["# comment", "", "x"], "# comment", False),
        (["a/**"], "a/b/c", True),
        (["a/**/z"], "a/b/c/z", True),
        (["fo"], "foo", False),
    ],
)
def test_docker_rules(rules: list[str], path: str, ignored: bool) -> None:
    assert IgnoreRules(rules).ignores(path) is ignored
