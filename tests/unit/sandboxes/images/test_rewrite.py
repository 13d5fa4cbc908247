"""A Dockerfile that old builders do not understand becomes one that means the same and that they do."""

from __future__ import annotations

import json

import pytest

from seatrial.errors import ImageFault, Unsupported
from seatrial.sandboxes.images.dockerfile import parse
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.rewrite import Rewritten, rewrite
from seatrial.sandboxes.images.stages import Recipe
from seatrial.sandboxes.images.trust import Trust

DEBIAN = "docker.io/library/debian:bookworm-slim"


def rewritten(text: str, **asked: str) -> Rewritten:
    target = asked.pop("target", "")
    return rewrite(Recipe.read(text, asked, target), {})


def lines(text: str, **asked: str) -> list[str]:
    return rewritten(text, **asked).text.splitlines()


def test_ordinary_instructions_are_written_in_the_one_spelling() -> None:
    text = (
        "FROM debian:bookworm-slim\nRUN apt-get update && \\\n    # why\n    apt-get install -y curl\n"
        'COPY . /app\nENV A=1 B="two words"\nENV C old form\nWORKDIR sub\nUSER $A\nEXPOSE 80 443/TCP\nVOLUME /v\n'
        'LABEL a.b="c d"\nSTOPSIGNAL SIGTERM\nHEALTHCHECK --interval=5s CMD curl x\nENTRYPOINT run me\nCMD ["bash"]\n'
    )
    assert lines(text) == [
        f"FROM {DEBIAN} AS stage-0",
        'RUN ["/bin/sh", "-c", "apt-get update &&     apt-get install -y curl"]',
        'COPY ["./", "/app"]',
        "ENV A='1'",
        "ENV B='two words'",
        "ENV C='old form'",
        "WORKDIR /sub",
        "USER 1",
        "EXPOSE 80 443/tcp",
        'VOLUME ["/v"]',
        "LABEL a.b='c d'",
        "STOPSIGNAL SIGTERM",
        'HEALTHCHECK --interval=5s CMD ["/bin/sh", "-c", "curl x"]',
        'ENTRYPOINT ["/bin/sh", "-c", "run me"]',
        'CMD ["bash"]',
    ]
    assert not rewritten(text).files


def test_run_heredoc_is_a_script_for_the_shell() -> None:
    done = lines('FROM debian:bookworm-slim\nRUN <<EOF\necho "a  b"\necho $HOME \\\n  tail\nEOF\nRUN true\n')
    assert json.loads(done[1].removeprefix("RUN ")) == ["/bin/sh", "-c", 'echo "a  b"\necho $HOME \\\n  tail\n']
    assert done[2] == 'RUN ["/bin/sh", "-c", "true"]'


def test_run_heredoc_uses_the_stage_s_shell() -> None:
    text = (
        'FROM debian AS a\nSHELL ["/bin/bash", "-eo", "pipefail", "-c"]\n'
        "FROM a\nRUN <<EOF\nx\nEOF\nFROM debian\nRUN <<EOF\ny\nEOF\n"
    )
    done = [json.loads(line[4:]) for line in lines(text) if line.startswith("RUN")]
    assert done == [["/bin/bash", "-eo", "pipefail", "-c", "x\n"], ["/bin/sh", "-c", "y\n"]]


def test_run_with_several_heredocs_leaves_them_to_the_shell() -> None:
    text = "FROM debian\nRUN cat <<A > /a && cat <<-'B' > /b\nin a $X\nA\n\tin b $X\n\tB\nRUN true\n"
    argv = json.loads(lines(text)[1].removeprefix("RUN "))
    assert argv[2] == "cat <<A > /a && cat <<-'B' > /b\nin a $X\nA\n\tin b $X\nB\n"


def test_run_heredoc_with_an_interpreter_runs_as_a_program() -> None:
    argv = json.loads(lines("FROM debian\nRUN <<EOF\n#!/usr/bin/env python3\nprint(1)\nEOF\n")[1].removeprefix("RUN "))
    assert argv[:2] == ["/bin/sh", "-c"]
    assert argv[-1] == "#!/usr/bin/env python3\nprint(1)\n"


def test_what_only_looks_like_a_heredoc_is_left_alone() -> None:
    text = 'FROM debian\nRUN cat <<< "EOF" && echo $((1<<2)) "<<EOF" \'<<X\' && true\nRUN echo done\n'
    assert [json.loads(line[4:])[2] for line in lines(text)[1:]] == [line[4:] for line in text.splitlines()[1:]]


def test_copy_heredoc_becomes_a_file_of_its_own() -> None:
    text = (
        "FROM debian\nARG WHO=you\nENV WHAT=tea\nCOPY --chmod=755 <<EOF data.txt <<-'RAW' /etc/app/\n"
        'for $WHO: "${WHAT}" ${NONE:-nothing} \\$kept\nEOF\n\traw $WHO\n\tRAW\n'
    )
    done = rewritten(text)
    assert done.text.splitlines()[-1] == ('COPY --chmod=755 ["made/1/EOF", "task/data.txt", "made/2/RAW", "/etc/app/"]')
    assert done.files["made/1/EOF"] == 'for you: "tea" nothing $kept\n'
    assert done.files["made/2/RAW"] == "raw $WHO\n"


def test_heredoc_variables_may_come_from_the_base() -> None:
    recipe = Recipe.read("FROM debian:bookworm-slim\nCOPY <<EOF /x\n$FROM_BASE\nEOF\n")
    done = rewrite(recipe, {DEBIAN: ImageConfig(env={"FROM_BASE": "yes"})})
    assert done.files["made/1/EOF"] == "yes\n"


def test_other_copies_find_the_task_s_files_beside_generated_ones() -> None:
    text = (
        "FROM debian AS one\nFROM debian\nARG URL=https://example.org/x\nCOPY <<EOF /x\nEOF\nCOPY . /app\n"
        'COPY ["a b", "/c/"]\nADD /rooted.tar $URL /d/\nCOPY --from=one /etc/hostname /h\nCOPY --link * /all/\n'
    )
    assert lines(text)[4:] == [
        'COPY ["task/", "/app"]',
        'COPY ["\'task/a b\'", "/c/"]',
        'ADD ["task/rooted.tar", "https://example.org/x", "/d/"]',
        'COPY --from=stage-0 ["/etc/hostname", "/h"]',
        'COPY ["task/*", "/all/"]',
    ]
    assert rewritten(text).fetches == ["https://example.org/x"]


def test_cache_mounts_are_plain_folders_and_binds_are_taken_away_again() -> None:
    text = (
        "FROM debian\nUSER app\n"
        "RUN --mount=type=cache,target=/root/.cache,id=../../x --mount=type=tmpfs,target=/t,uid=7 make\n"
        "RUN --mount=type=bind,source=req.txt,target=/tmp/req.txt pip install -r /tmp/req.txt\n"
        "RUN --mount=from=ghcr.io/astral-sh/uv:1,source=/uv,target=/bin/uv uv --version\n"
    )
    assert lines(text)[2:] == [
        'COPY ["made/empty/", "/root/.cache/"]',
        'COPY --chown=7:0 ["made/empty/", "/t/"]',
        'RUN ["/bin/sh", "-c", "make"]',
        'COPY ["task/req.txt", "/tmp/req.txt"]',
        'RUN ["/bin/sh", "-c", "pip install -r /tmp/req.txt"]',
        "USER root",
        'RUN ["rm", "-rf", "--", "/tmp/req.txt"]',
        "USER app",
        'COPY --from=ghcr.io/astral-sh/uv:1 ["/uv", "/bin/uv"]',
        'RUN ["/bin/sh", "-c", "uv --version"]',
        "USER root",
        'RUN ["rm", "-rf", "--", "/bin/uv"]',
        "USER app",
    ]


def test_a_bind_over_the_working_directory_is_not_deleted_and_that_is_told() -> None:
    done = rewritten("FROM debian\nWORKDIR /app/src\nRUN --mount=type=bind,target=/app make\n")
    assert "rm" not in done.text
    assert "/app" in done.notes[0]


def test_secrets_are_left_out_and_required_ones_refused() -> None:
    done = rewritten("FROM debian\nRUN --mount=type=secret,id=token cat /run/secrets/token || true\n")
    assert done.text.splitlines()[1] == 'RUN ["/bin/sh", "-c", "cat /run/secrets/token || true"]'
    assert "secret" in done.notes[0]
    with pytest.raises(Unsupported, match="secret"):
        rewritten("FROM debian\nRUN --mount=type=secret,id=token,required=true true\n")
    with pytest.raises(Unsupported, match="insecure"):
        rewritten("FROM debian\nRUN --security=insecure true\n")


def test_build_arguments_and_platform_are_written_in() -> None:
    text = (
        "ARG TAG=12\nFROM --platform=$BUILDPLATFORM debian:${TAG}-slim AS one\n"
        'ARG TAG\nARG OTHER="a b" TARGETOS\nARG UNKNOWN\n'
    )
    assert lines(text) == [
        "FROM docker.io/library/debian:12-slim AS stage-0",
        "ARG TAG='12'",
        "ARG OTHER='a b'",
        "ARG TARGETOS='linux'",
        "ARG UNKNOWN",
    ]
    assert lines(text, TAG="13", OTHER='$x "q"')[:3] == [
        "FROM docker.io/library/debian:13-slim AS stage-0",
        "ARG TAG='13'",
        "ARG OTHER='$x \"q\"'",
    ]


def test_a_foreign_platform_is_refused() -> None:
    with pytest.raises(Unsupported, match="linux/s390x"):
        rewritten("FROM --platform=linux/s390x debian\n")


def test_a_target_leaves_out_later_stages() -> None:
    text = "FROM debian AS one\nRUN a\nFROM debian AS two\nRUN b\n"
    assert lines(text, target="one")[-1] == 'RUN ["/bin/sh", "-c", "a"]'
    assert lines(text, target="1")[-1] == 'RUN ["/bin/sh", "-c", "b"]'
    with pytest.raises(ImageFault, match="three"):
        lines(text, target="three")


def test_bases_are_every_image_that_is_needed_and_no_stage() -> None:
    text = (
        "FROM debian:12 AS build\nFROM scratch AS empty\nFROM build\nARG V=1\n"
        "COPY --from=build /a /a\nCOPY --from=0 /b /b\nCOPY --from=busybox:$V /bin/sh /sh\n"
        "COPY --from=ghcr.io/astral-sh/uv:0.5 /uv /uv\nRUN --mount=from=alpine:3,target=/x true\n"
    )
    assert Recipe.read(text).bases() == (
        "docker.io/library/debian:12",
        "docker.io/library/busybox:1",
        "ghcr.io/astral-sh/uv:0.5",
        "docker.io/library/alpine:3",
    )


def test_directives_comments_and_the_escape_character() -> None:
    text = "# syntax=docker/dockerfile:1\n# escape=`\n\nfrom debian as x\nRun echo a `\n  b\n"
    parsed = parse(text)
    assert parsed.escape == "`"
    assert [item.keyword for item in parsed.instructions] == ["FROM", "RUN"]
    assert parsed.instructions[1].rest == "echo a   b"
    assert lines(text)[1] == 'RUN ["/bin/sh", "-c", "echo a   b"]'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no FROM"),
        ("RUN true\nFROM debian\n", "line 1"),
        ("FROM debian\nRUN <<EOF\nnever\n", "EOF"),
        ("FROM $NOTHING\n", "NOTHING"),
        ("FROM debian\n??? x\n", "Line 2"),
        ("FROM a b c d\n", "Line 1"),
        ("FROM debian\nCOPY <<a/../b /x\na/../b\n", "name"),
        ("FROM debian\nSHELL bash\n", "SHELL"),
    ],
)
def test_broken_files_are_told_with_the_place(text: str, said: str) -> None:
    with pytest.raises(ImageFault, match=said.replace("$", r"\$")):
        rewritten(text)


def test_certificates_are_added_once_and_variables_in_every_stage() -> None:
    trust = Trust("abc", {"seatrial-000.crt": "PEM\n"})
    recipe = Recipe.read("FROM debian:bookworm-slim AS a\nFROM a\nFROM scratch\n")
    fresh = rewrite(recipe, {DEBIAN: ImageConfig(user="app")}, trust)
    assert fresh.text.count('COPY ["made/ca/", "/usr/local/share/ca-certificates/"]') == 1
    assert fresh.text.count("ARG PIP_CERT='/etc/ssl/certs/ca-certificates.crt'") == 2
    assert fresh.text.splitlines()[1] == "USER root"
    assert "USER app" in fresh.text
    has_them = rewrite(recipe, {DEBIAN: ImageConfig(labels={"seatrial.trust": "abc"})}, trust)
    assert "COPY" not in has_them.text
    assert has_them.text.count("ARG PIP_CERT=") == 2
