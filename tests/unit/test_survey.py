"""What ``scripts/survey.py`` counts as a repeated passage, and what it says of folders."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

from tests.command_line import ROOT

IMPORTS = "".join(f"import module{number}\n" for number in range(8))
PASSAGE = "".join(f"value{number} = {number}\n" for number in range(8))


def surveyed(folder: Path, **files: str) -> dict[str, int | str]:
    for name, text in files.items():
        place = folder / "src" / "seatrial" / f"{name.replace('__', '/')}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    found: dict[str, int | str] = run_path(str(ROOT / "scripts" / "survey.py"))["survey"](folder)
    return found


def passages(folder: Path, **files: str) -> int | str:
    return surveyed(folder, **files)["repeated passages of six lines or more"]


def test_a_passage_is_counted_once_however_long_and_wherever_it_stands(tmp_path: Path) -> None:
    inside = "def inside():\n" + "".join(f"    {line}\n\n" for line in PASSAGE.splitlines())
    assert passages(tmp_path, one=IMPORTS + PASSAGE, two="first = 1\n" + PASSAGE, room__three=inside) == 1


def test_imports_texts_and_short_passages_are_none(tmp_path: Path) -> None:
    short = "".join(PASSAGE.splitlines(keepends=True)[:5])
    text = '"""' + "\n".join(f"line {number}" for number in range(9)) + '"""\n'
    assert passages(tmp_path, one=text + IMPORTS + short, two=text + IMPORTS + short + "other = 1\n") == 0


def test_the_fullest_folders_are_named(tmp_path: Path) -> None:
    found = surveyed(tmp_path, room__one="", room__two="", room__three="", hall__one="", alone="")
    assert found["files in the fullest folder"] == 3
    assert found["the 5 fullest folders"] == "room 3, . 1, hall 1"
