"""Spellings that nobody thought of: whatever a hostile instruction becomes, the builder is given harmless lines."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import SeatrialError
from seatrial.sandboxes.images.rewrite import rewrite
from seatrial.sandboxes.images.stages import Recipe
from tests.attacks.task_author.reading import is_canonical
from tests.properties import trying

TOP = "FROM debian:12 AS base\nARG M=mount\nENV F=--mount=type=bind,from=base,source=/,target=/x\n"
HOSTILE = (
    "RUN --mount=type=bind,from=base,source=/rootdir,target=/x,rw touch /x/OUT",
    "RUN --mount=type=cache,id=../../..,target=/x --security=insecure true",
    "ONBUILD RUN --mount=type=bind,from=base,source=/rootdir,target=/x touch /x/OUT",
    "COPY --from=base --chown=0:0 /rootdir/etc/shadow /x",
    "ADD --keep-git-dir=true https://example.org/x.git#main /x",
    "RUN <<EOF\nRUN --mount=type=bind,source=/,target=/x true\nEOF",
    "HEALTHCHECK --interval=1s CMD --mount=x true",
    'RUN ["sh", "-c", "--mount=type=bind"]',
    "ENV A=b --mount=type=bind",
)
PIECES = (
    *(
        '"',
        "'",
        "\\",
        "`",
        "$",
        "${M}",
        "$F",
        "${M:-mount}",
        "${",
        "}",
        "--",
        "-",
        "=",
        ",",
        "[",
        "]",
        "<<EOF",
        "<<-'E'",
    ),
    *(" ", "\t", "\n", "\r", "\r\n", "\\\n", "`\n", "\\ \n", "\\\t\n# note\n", "\n\n", "\v", "\f", "\0", "\x1b"),
    *(
        "\u00a0",
        "\u0085",
        "\u2028",
        "\u3000",
        "\u200b",
        "\ufeff",
        "\udc80",
        "ONBUILD ",
        "RUN ",
        "run ",
        "# ",
        "EOF",
        "é",
    ),
)
DIRECTIVES = (
    "",
    "# escape=`\n",
    "# syntax=evil/x\n",
    "# escape=\\\n",
    "\ufeff",
    "# escape = `\r\n",
    "#escape=x\n",
    "\n",
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A hostile instruction with pieces put in, taken out or written twice."""
    text = draw(st.sampled_from(HOSTILE))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(text)))
        size = draw(st.integers(0, 3))
        piece = draw(st.sampled_from(PIECES) | st.just(text[place : place + 8]))
        if draw(st.booleans()):
            piece = piece.swapcase()
        text = text[:place] + piece + text[place + size :]
    return f"{draw(st.sampled_from(DIRECTIVES))}{TOP}{text}\n"


def written(text: str) -> str | None:
    try:
        return rewrite(Recipe.read(text), {}).text
    except SeatrialError:
        return None


@trying(1500)
@given(mutated())
def test_the_builder_gets_nothing_but_harmless_lines(text: str) -> None:
    done = written(text)
    if done is None:
        return
    assert is_canonical(done), done
    assert written(done) == done


@trying(400)
@given(st.text(max_size=60), st.sampled_from(("RUN ", "ENV A=", "LABEL a=", "WORKDIR ", "COPY . ", "CMD ", "ARG A=")))
def test_any_text_is_refused_or_written_in_the_one_spelling(text: str, keyword: str) -> None:
    done = written(f"FROM debian:12\n{keyword}{text}\n")
    assert done is None or (is_canonical(done) and written(done) == done)


@trying(300)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")), min_size=1, max_size=40))
def test_values_keep_their_meaning(value: str) -> None:
    """The twin: what is quoted as a shell would arrives as it was."""
    quoted = "'" + value.replace("'", "'\\''") + "'"
    done = written(f"FROM debian:12\nENV A={quoted}\nARG B={quoted}\nCMD {json.dumps([value])}\n")
    assert done is not None
    lines = done.splitlines() if "\x85" not in done else done.split("\n")
    assert lines[1] == f"ENV A={quoted}"
    assert json.loads(lines[3].removeprefix("CMD ")) == [value]
