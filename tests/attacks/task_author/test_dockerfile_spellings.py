"""Spellings that a look at the text misses: each is refused with a sentence that names its line, or means no harm."""

from __future__ import annotations

import re

import pytest

from seatrial.errors import ImageFault, SeatrialError
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.rewrite import rewrite
from seatrial.sandboxes.images.stages import Recipe
from tests.attacks.task_author.reading import is_canonical

DEBIAN = "docker.io/library/debian:12"
TOP = "FROM debian:12 AS base\nRUN ln -s / /rootdir\nFROM debian:12\n"
MOUNT = "type=bind,from=base,source=/rootdir,target=/x,rw"


def written(text: str, **build_args: str) -> str:
    return rewrite(Recipe.read(text, build_args), {DEBIAN: ImageConfig()}).text


REFUSED = {
    "quotes in the flag": f'RUN --"mount"={MOUNT} touch /x/OUT',
    "quotes around a letter": f"RUN --m'o'unt={MOUNT} touch /x/OUT",
    "an escape in the flag": f"RUN --m\\ount={MOUNT} touch /x/OUT",
    "a variable as the flag": f"ARG M=mount\nRUN --${{M}}={MOUNT} touch /x/OUT",
    "a variable without braces": f"ENV M=mount\nRUN --$M={MOUNT} touch /x/OUT",
    "upper case": f"RUN --MOUNT={MOUNT} touch /x/OUT",
    "a blank before the equals sign": f"RUN --mount ={MOUNT} touch /x/OUT",
    "the value as the next word": f"RUN --mount {MOUNT} touch /x/OUT",
    "two dashes alone": f"RUN -- --mount={MOUNT} touch /x/OUT",
    "two dashes first": f"RUN --  touch /x/OUT --mount={MOUNT}",
    "a flag after one that is not known": f"RUN --x --mount={MOUNT} touch /x/OUT",
    "an escape in the value": f"RUN --mount={MOUNT.replace('from', 'fr\\om')} touch /x/OUT",
    "a quote that never ends": f'RUN --mount="{MOUNT} touch /x/OUT',
    "a no-break space before the flag": f"RUN \u00a0--mount={MOUNT} touch /x/OUT",
    "a no-break space after the keyword": f"RUN\u00a0--mount={MOUNT} touch /x/OUT",
    "a no-break space after the continuation": f"RUN \\\u00a0\n--mount={MOUNT} touch /x/OUT",
    "a next line character": f"RUN \u0085--mount={MOUNT} touch /x/OUT",
    "an ideographic space": f"RUN \u3000--mount={MOUNT} touch /x/OUT",
    "a line separator": f"RUN true\u2028RUN --mount={MOUNT} touch /x/OUT",
    "a zero width space": f"RUN \u200b--mount={MOUNT} touch /x/OUT",
    "a byte order mark inside": f"\ufeffRUN --mount={MOUNT} touch /x/OUT",
    "a carriage return inside": f"RUN true\rRUN --mount={MOUNT} touch /x/OUT",
    "a vertical tab": f"RUN\v--mount={MOUNT} touch /x/OUT",
    "a form feed": f"RUN \f--mount={MOUNT} touch /x/OUT",
    "a null": "RUN echo \0 > /x",
    "propagation of a mount": f"RUN --mount={MOUNT},bind-propagation=rshared touch /x/OUT",
    "a label of the mount": f"RUN --mount={MOUNT},relabel=shared touch /x/OUT",
    "a kind of mount that does not exist": "RUN --mount=type=volume,target=/x true",
    "a kind by a variable": "ARG K=devpts\nRUN --mount=type=$K,target=/x true",
    "a field twice": "RUN --mount=type=cache,target=/x,type=bind true",
    "privileges": "RUN --security=insecure true",
    "privileges by a variable": "ARG S=insecure\nRUN --security=$S true",
    "the network of the host": "RUN --network=host true",
    "a device": "RUN --device=/dev/vda true",
    "a trigger with a mount": f"ONBUILD RUN --mount={MOUNT} touch /x/OUT",
    "a trigger with quotes": f'ONBUILD RUN --"mount"={MOUNT} touch /x/OUT',
    "a trigger of a trigger": f"ONBUILD ONBUILD RUN --mount={MOUNT} touch /x/OUT",
    "a trigger with a base": "ONBUILD FROM debian:12",
    "a trigger with a here-document": "ONBUILD RUN <<EOF\ntrue\nEOF",
    "a stage with triggers as a base": "FROM debian:12 AS t\nONBUILD RUN true\nFROM t",
    "a flag of an instruction that takes none": "CMD --mount=x true",
    "a flag of ENV": "ENV --mount=x A=b",
    "COPY from an escape": "COPY --fr\\om=base /rootdir /x",
    "COPY with exclusions": "COPY --exclude=x . /x",
    "COPY with parents": "COPY --parents a/b /x",
    "COPY from a stage that is to come": "COPY --from=7 /x /x",
    "COPY of an address": "COPY https://example.org/x /x",
    "ADD of a repository": "ADD https://example.org/x.git /x",
    "ADD over ssh": "ADD git@example.org:x.git /x",
    "ADD of a local address": "ADD file:///etc/shadow /x",
    "ADD with a password": "ADD http://user:password@example.org/x /x",
    "an owner with more": "COPY --chown=0:0,x . /x",
    "a mode of letters": "COPY --chmod=u+s . /x",
    "a user with a blank": "USER root --x",
    "a port with a flag": "EXPOSE 80 --x",
    "a list with more behind it": 'RUN ["true"] && touch /x/OUT',
    "a list of numbers": "RUN [1]",
    "a null in a list": 'RUN ["true", "\\u0000"]',
    "an unknown instruction": "INCLUDE /etc/passwd",
    "an instruction of buildah's": "RUN true\nMOUNT /x",
    "an unknown expansion": "ENV A=${B@P}",
    "an expansion that never ends": "ENV A=${B",
    "a label of ours": "LABEL seatrial.key=abc",
    "a label of ours by a variable": "ARG L=seatrial\nLABEL ${L}.bases=[]",
    "a shell that is no list": "SHELL --mount=x",
    "a health check with flags of its own": "HEALTHCHECK --mount=x CMD true",
}


@pytest.mark.parametrize("name", REFUSED)
def test_spelling_is_refused_and_the_line_is_named(name: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        written(f"{TOP}{REFUSED[name]}\n")
    assert re.search(r"[Ll]ine \d+", str(caught.value))
    assert "\0" not in str(caught.value)


HARMLESS = {
    "a mount as it is documented": (f"{TOP}RUN --mount={MOUNT} touch /x/OUT\n", "--mount"),
    "a mount on a continued line": (f"{TOP}RUN \\\n  --mount={MOUNT} \\\n touch /x/OUT\n", "--mount"),
    "a comment between": (f"{TOP}RUN \\\n# why\n\n  --mount={MOUNT} touch /x/OUT\n", "--mount"),
    "another escape character": (f"# escape=`\n{TOP}RUN `\n --mount={MOUNT} touch /x/OUT\n", "--mount"),
    "a foreign syntax": (f"# syntax=evil.example/frontend:1\n{TOP}RUN true\n", "evil"),
    "lower case and tabs": (f"{TOP}run\t--mount={MOUNT}\ttouch /x/OUT\n", "--mount"),
    "carriage returns at line ends": (f"{TOP}RUN true \\\n --mount={MOUNT}\n".replace("\n", "\r\n"), "\r"),
    "a byte order mark in front": (f"\ufeff{TOP}RUN true\n", "\ufeff"),
    "quotes around the value": (f'{TOP}RUN --mount="{MOUNT}" touch /x/OUT\n', "--mount"),
    "an unused trigger": (f"{TOP}ONBUILD RUN touch /x\n", "ONBUILD"),
    "a value that looks like an instruction": (f"{TOP}ENV A='x' B=\"RUN --mount=y\"\n", "\nRUN --"),
    "a variable with a flag in it": (f"{TOP}ARG F=--mount=x\nRUN $F true\n", "RUN --"),
    "a default that is a flag": (f"{TOP}ARG C=--from=x\nCOPY $C . /x\n", "COPY --"),
    "a stage with an image's name": ("FROM debian:12 AS debian\nFROM debian\nRUN true\n", "AS debian"),
    "a path upwards": (f"{TOP}COPY ../../../../etc/shadow /x\n", ".."),
    "a here-document that looks like an instruction": (f"{TOP}RUN <<E\nRUN --mount={MOUNT} x\nE\n", "\nRUN --"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_spelling_is_written_anew(name: str) -> None:
    text, unwanted = HARMLESS[name]
    done = written(text)
    assert is_canonical(done), done
    assert unwanted not in done.replace("RUN --mount=y", "").replace('"--mount=x', "").replace("true --mount", "")


def test_a_base_with_triggers_is_refused() -> None:
    recipe = Recipe.read("FROM debian:12\nRUN true\n")
    with pytest.raises(ImageFault, match="ONBUILD"):
        rewrite(recipe, {DEBIAN: ImageConfig(on_build=(f"RUN --mount={MOUNT} touch /x/OUT",))})
    assert is_canonical(rewrite(recipe, {DEBIAN: ImageConfig()}).text)


def test_a_build_argument_cannot_add_a_line() -> None:
    with pytest.raises(ImageFault, match="control character"):
        written(f"{TOP}ARG A\n", A=f"x\nRUN --mount={MOUNT} touch /x/OUT")
    assert "ARG A='--mount=x'" in written(f"{TOP}ARG A\n", A="--mount=x")


@pytest.mark.parametrize("directive", ["# escape=x", "# escape=`\n# escape=\\", "# escape="])
def test_an_escape_directive_is_understood_or_refused(directive: str) -> None:
    try:
        done = written(f"{directive}\n{TOP}RUN \\\n--mount={MOUNT} true\n")
    except ImageFault:
        return
    assert is_canonical(done)


@pytest.mark.parametrize(
    "text",
    [
        "ENV A=aaaaaaaaaa\n" + "ENV A=$A$A$A$A$A$A$A$A$A$A\n" * 12,
        "ENV A=${A:-" * 60 + "}" * 60 + "\n",
        f"ENV A={'a' * 4000}\nENV B=${{A##{'*a' * 30}b}}\n",
    ],
    ids=["doubling", "nesting", "matching"],
)
def test_variables_cannot_fill_the_memory_or_take_for_ever(text: str) -> None:
    with pytest.raises(ImageFault):
        written(f"FROM debian:12\n{text}")


def test_variables_work() -> None:
    text = "FROM debian:12\nENV V=1.2.3-rc1 E=\nENV A=${V%-*} B=${V##*-} C=${E:-x} D=${V/./_} F=${V:+set} G=${E-y}\n"
    assert written(text).splitlines()[3:] == [
        "ENV A='1.2.3'",
        "ENV B='rc1'",
        "ENV C='x'",
        "ENV D='1_2.3-rc1'",
        "ENV F='set'",
        "ENV G=''",
    ]
