"""Variables in text: ``S`` is set, ``E`` is empty, ``U`` is unset. The last test asks ``docker compose`` the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from seatrial.domain.substitution import Malformed, Variable, escaped, only_variable, substitute, variables

VALUES = {"S": "s", "E": ""}
FILLED = {
    "plain": "plain",
    "$S ${S} {$S} $S-1 é$Sé": "s s {s} s-1 ésé",
    "[$U] [${U}] [$S_1]": "[] [] []",
    "$$ $$S $${S} $$$S $$$$S": "$ $S ${S} $s $$S",
    "a$ $1 $- $( ${U:-$} ${U:-$1}": "a$ $1 $- $( $ $1",
    "[${U:-x}] [${E:-x}] [${S:-x}]": "[x] [x] [s]",
    "[${U-x}] [${E-x}] [${S-x}]": "[x] [] [s]",
    "[${U:+x}] [${E:+x}] [${S:+x}]": "[] [] [x]",
    "[${U+x}] [${E+x}] [${S+x}]": "[] [x] [x]",
    "[${S:?m}] [${S?m}] [${E?m}]": "[s] [s] []",
    "[${U:-}] [${U:--x}] [${U:-?x}] [${U:-a:-b}] [${U-a?b}]": "[] [-x] [?x] [a:-b] [a?b]",
    "[${U:-$S}] [${U:-a${S:-b}c}] [${U:-${E:-${S}}}]": "[s] [asc] [s]",
    "[${U:-a{b}c}] [${S:-a}b}] [${U:-}}]": "[a{b}c] [sb}] [}]",
    "[${U:-a$$b}] [${U:-$${S}}]": "[a$b] [${S}]",
    "${S}\n}": "s\n}",
}
MALFORMED = ["${", "${}", "${S", "${1}", "${S }", "${é}", "${S:}", "${S=x}", "${S:=x}", "${S#a}", "${$S}", "${U:-a\nb}",
             "${S:-${1}}", "${S:-${", "$$${1}"]  # fmt: skip
REQUIRED = {"${U:?why}": "why", "${E:?why ${S}}": "why s", "${U?}": "", "${S:-${U:?used or not}}": "used or not"}


class _Required(Exception):
    pass


def fill(text: str) -> str:
    """As compose does it: a missing value is empty, unless it is required."""

    def missing(name: str, required: str | None) -> str:
        if required is not None:
            raise _Required(required)
        return ""

    return substitute(text, VALUES.get, missing)


@pytest.mark.parametrize("text", FILLED)
def test_variables_are_filled_in(text: str) -> None:
    assert fill(text) == FILLED[text]


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_no_variable_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        fill(text)


@pytest.mark.parametrize("text", REQUIRED)
def test_a_required_value_that_is_missing(text: str) -> None:
    with pytest.raises(_Required) as told:
        fill(text)
    assert str(told.value) == REQUIRED[text]


def test_a_value_is_not_searched_for_variables() -> None:
    assert substitute("$A", {"A": "${B}$$", "B": "b"}.get, lambda name, _: name) == "${B}$$"


def test_variables_inside_words_are_found() -> None:
    assert [found.name for found in variables("$A ${B:-${C:+$D}} $$E")] == ["A", "B", "C", "D"]


def test_a_text_that_is_one_variable() -> None:
    assert only_variable("${A}") == only_variable("$A") == Variable("A")
    assert only_variable("${A:-b}") == Variable("A", ":-", ["b"])
    assert [only_variable(text) for text in ("", "A", "$$", "$A$B", "${A}/x")] == [None] * 5


def test_escaped_text_stays_as_it_is() -> None:
    text = "$ $$ ${S} $S ${"
    assert fill(escaped(text)) == text


def test_deep_nesting_is_refused_and_moderate_nesting_is_not() -> None:
    assert fill("${U:-" * 9 + "x" + "}" * 9) == "x"
    with pytest.raises(Malformed, match="too deeply"):
        fill("${U:-" * 5000 + "x" + "}" * 5000)


@pytest.mark.skipif(not shutil.which("docker"), reason="needs docker's command line")
def test_compose_reads_the_same(tmp_path: Path) -> None:
    texts = dict(enumerate(FILLED))
    told = _compose(tmp_path, {f"V{number}": text for number, text in texts.items()})
    assert told is not None
    # compose escapes what it prints
    assert told == {f"V{number}": escaped(FILLED[text]) for number, text in texts.items()}
    accepted = [text for text in [*MALFORMED, *REQUIRED] if _compose(tmp_path, {"V": text}) is not None]
    assert accepted == []


def _compose(folder: Path, env: dict[str, str]) -> dict[str, str] | None:
    file = folder / "docker-compose.yaml"
    file.write_text(json.dumps({"services": {"main": {"image": "debian", "environment": env}}}))
    command = ["docker", "compose", "-f", str(file), "config", "--format", "json"]
    told = subprocess.run(command, env={"PATH": os.environ["PATH"], **VALUES}, capture_output=True, check=False)
    if told.returncode:
        assert b"interpolat" in told.stderr, told.stderr
        return None
    found: dict[str, str] = json.loads(told.stdout)["services"]["main"]["environment"]
    return found
