"""Secrets at rest: only the installation that sealed them can open them. Asked of both ways to have a secret key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.errors import SetupProblem
from seatrial.ports.seal import Seal

TEXT = "sk-a secret with ümlauts and\nlines"
Make = Callable[[str], Seal]
"""A seal of the installation with this name; the same name is the same installation, in another process."""


@pytest.fixture(params=["a key in the home", "a key from the settings"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def in_home(name: str) -> Seal:
        (tmp_path / name).mkdir(exist_ok=True)
        return FernetSeal(tmp_path / name)

    def from_settings(name: str) -> Seal:
        return FernetSeal(tmp_path, secret=f"secret of {name}")

    return in_home if request.param == "a key in the home" else from_settings


@pytest.mark.parametrize("text", ["", "x", TEXT, "k" * 100_000])
def test_what_was_sealed_opens_again_also_in_another_process(make: Make, text: str) -> None:
    assert make("here").open(make("here").close(text)) == text


def test_nothing_of_the_secret_shows_and_no_two_are_alike(make: Make) -> None:
    one, other = make("here").close(TEXT), make("here").close(TEXT)
    assert one != other
    assert "secret" not in one and TEXT not in one


def test_another_installation_cannot_open_it(make: Make) -> None:
    sealed = make("here").close(TEXT)
    with pytest.raises(SetupProblem, match="another secret key"):
        make("elsewhere").open(sealed)


@pytest.mark.parametrize("at", [10, 40, -30])
def test_what_was_changed_does_not_open(make: Make, at: int) -> None:
    sealed = list(make("here").close(TEXT))
    sealed[at] = "A" if sealed[at] != "A" else "B"
    with pytest.raises(SetupProblem):
        make("here").open("".join(sealed))


@pytest.mark.parametrize("rubbish", ["", "not sealed", "gAAAAA==", "ünsealed"])
def test_what_was_never_sealed_does_not_open(make: Make, rubbish: str) -> None:
    with pytest.raises(SetupProblem):
        make("here").open(rubbish)
