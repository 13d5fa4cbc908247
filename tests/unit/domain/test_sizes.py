from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.domain.sizes import bytes_of
from seatrial.sandboxes.compose import ComposeRefused, read_compose


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("512b", 512),
        ("512m", 512 << 20),
        (" 2G ", 2 << 30),
        ("2gb", 2 << 30),
        ("2GiB", 2 << 30),
        ("1.5k", 1536),
        (".5k", 512),
        ("1 t", 1 << 40),
    ],
)
def test_size(text: str, size: int) -> None:
    assert bytes_of(text) == size


NO_SIZES = ["", "m", "1.2.3g", "...", "-1g", "1e9", "9" * 400, "1g1g", "١g"]


@pytest.mark.parametrize("text", NO_SIZES)
def test_no_size(text: str) -> None:
    assert bytes_of(text) is None


@pytest.mark.parametrize("text", ["1.2.3g", "...", "9" * 400])
def test_compose_file_with_a_broken_size_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "docker-compose.yaml").write_text(f"services:\n  main:\n    image: debian\n    mem_limit: '{text}'\n")
    with pytest.raises(ComposeRefused, match="is not a size"):
        read_compose(tmp_path)
