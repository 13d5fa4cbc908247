"""Dockerfiles as people write them: all are understood, and what they mean is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.rewrite import rewrite
from seatrial.sandboxes.images.stages import Recipe
from tests.attacks.task_author.reading import is_canonical

SAMPLES = sorted((Path(__file__).parents[4] / "samples").rglob("Dockerfile"))
SHELL = '["/bin/sh", "-c", '

CORPUS: dict[str, tuple[str, str]] = {
    "apt": (
        "FROM ubuntu:24.04\nRUN apt-get update \\\n  && apt-get install -y --no-install-recommends \\\n    curl \\\n"
        "    git \\\n  && rm -rf /var/lib/apt/lists/*\n",
        "--no-install-recommends     curl     git   && rm -rf /var/lib/apt/lists/*",
    ),
    "python": (
        "FROM python:3.12-slim\nENV PYTHONUNBUFFERED=1 \\\n    PIP_NO_CACHE_DIR=1\nWORKDIR /app\n"
        "COPY requirements.txt .\n"
        'RUN pip install -r requirements.txt\nCOPY . .\nCMD ["python", "-m", "app"]\n',
        'COPY ["requirements.txt", "."]',
    ),
    "pip cache": (
        "# syntax=docker/dockerfile:1.7\nFROM python:3.12\nRUN --mount=type=cache,target=/root/.cache/pip \\\n"
        "    pip install numpy==2.1.0\n",
        "pip install numpy==2.1.0",
    ),
    "uv": (
        "FROM python:3.13-slim\nCOPY --from=ghcr.io/astral-sh/uv:0.7.13 /uv /uvx /bin/\n"
        "RUN --mount=type=bind,source=uv.lock,target=uv.lock uv sync --locked\n",
        'COPY --from=ghcr.io/astral-sh/uv:0.7.13 ["/uv", "/uvx", "/bin/"]',
    ),
    "node": (
        "FROM node:22-alpine AS build\nWORKDIR /src\nCOPY package*.json ./\nRUN npm ci\n"
        'COPY . .\nRUN ["npm","run","build"]\n'
        "FROM nginx:alpine\nCOPY --from=build /src/dist /usr/share/nginx/html\nEXPOSE 80\n",
        'COPY --from=stage-0 ["/src/dist", "/usr/share/nginx/html"]',
    ),
    "go": (
        "ARG GO=1.23\nFROM golang:${GO} AS b\nARG TARGETARCH\n"
        "RUN CGO_ENABLED=0 GOARCH=$TARGETARCH go build -o /out/x .\n"
        'FROM scratch\nCOPY --from=b --chmod=0755 /out/x /x\nENTRYPOINT ["/x"]\n',
        'COPY --from=stage-0 --chmod=0755 ["/out/x", "/x"]',
    ),
    "rust": (
        'FROM rust:1-bookworm\nSHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN curl https://x.example | sh -s -- -y\n',
        '"/bin/bash", "-o", "pipefail", "-c", "curl https://x.example | sh -s -- -y"',
    ),
    "conda": (
        "FROM continuumio/miniconda3\nENV PATH /opt/conda/envs/x/bin:$PATH\nRUN conda create -n x\n",
        "/envs/x/bin:/",
    ),
    "java": (
        "FROM eclipse-temurin:21-jdk\nARG V=3.9.9\nENV M=/opt/maven-${V}\nENV PATH=${M}/bin:${PATH}\n",
        "/opt/maven-3.9.9/bin",
    ),
    "user": ("FROM debian:12\nRUN useradd -m -s /bin/bash dev\nUSER dev:dev\nWORKDIR /home/dev\n", "USER dev:dev"),
    "heredoc script": ("FROM debian:12\nRUN <<EOF\nset -eux\napt-get update\nEOF\n", "set -eux\\napt-get update\\n"),
    "heredoc file": ("FROM debian:12\nCOPY <<'EOF' /etc/x.conf\na = $b\nEOF\n", 'COPY ["made/1/EOF", "/etc/x.conf"]'),
    "heredoc python": ("FROM python:3\nRUN <<EOF python3\nprint('x' * 3)\nEOF\n", "print('x' * 3)"),
    "heredoc append": (
        "FROM debian:12\nRUN cat >> /etc/hosts <<EOF && echo done\n1.2.3.4 x\nEOF\n",
        "1.2.3.4 x\\nEOF\\n",
    ),
    "shift is no heredoc": ("FROM debian:12\nRUN echo $((1 << 3))\n", "$((1 \\u003c\\u003c 3))"),
    "sed with escapes": (
        "FROM debian:12\nRUN sed -i 's/^#\\(Port\\) 22$/\\1 2222/' /etc/ssh/sshd_config\n",
        "s/^#\\\\(Port\\\\) 22$/\\\\1 2222/",
    ),
    "printf": ("FROM debian:12\nRUN printf 'a\\nb\\n' > /x && cat /x\n", "printf 'a\\\\nb\\\\n' > /x"),
    "nested quotes": ('FROM debian:12\nRUN bash -c "echo \'it is \\"quoted\\"\'"\n', 'it is \\\\\\"quoted'),
    "test brackets": (
        "FROM debian:12\nRUN [ -f /etc/passwd ] && echo yes\n",
        f'{SHELL}"[ -f /etc/passwd ] && echo yes"]',
    ),
    "double brackets": ('FROM debian:12\nRUN [[ -n "$A" ]] || true\n', "[[ -n"),
    "comments between": (
        "FROM debian:12\nRUN a && \\\n    # first\n    b && \\\n\n    # second\n    c\n",
        "a &&     b &&     c",
    ),
    "shell variables stay": (
        "FROM debian:12\nARG A=1\nRUN for f in $(ls); do echo ${f%.txt} $A; done\n",
        "${f%.txt} $A",
    ),
    "env quotes": ("FROM debian:12\nENV A=\"x y\" B='p $q' C=a\\ b\n", "ENV C='a b'"),
    "env old form": ("FROM debian:12\nENV LANG C.UTF-8\n", "ENV LANG='C.UTF-8'"),
    "env empty": ("FROM debian:12\nENV DEBIAN_FRONTEND=\n", "ENV DEBIAN_FRONTEND=''"),
    "arg without value": ("FROM debian:12\nARG http_proxy\n", "ARG http_proxy"),
    "arg before from": (
        "ARG R=docker.io\nARG I=library/debian\nFROM ${R}/${I}:12\n",
        "FROM docker.io/library/debian:12 AS stage-0",
    ),
    "digest": (f"FROM debian@sha256:{'a' * 64}\n", f"@sha256:{'a' * 64} AS stage-0"),
    "port registry": ("FROM registry.example.org:5000/team/x:1\n", "FROM registry.example.org:5000/team/x:1 AS"),
    "labels": ('FROM debian:12\nLABEL org.opencontainers.image.source="https://x" version=1\n', "LABEL version='1'"),
    "label on lines": ('FROM debian:12\nLABEL a="1" \\\n      b="2"\n', "LABEL b='2'"),
    "maintainer": (
        "FROM debian:12\nMAINTAINER A Person <a@example.org>\n",
        "LABEL maintainer='A Person <a@example.org>'",
    ),
    "expose variable": ("FROM debian:12\nENV P=8080\nEXPOSE $P 53/udp 9000-9010\n", "EXPOSE 8080 53/udp 9000-9010"),
    "volume": ("FROM debian:12\nVOLUME /data /logs\n", 'VOLUME ["/data", "/logs"]'),
    "volume list": ('FROM debian:12\nVOLUME ["/data"]\n', 'VOLUME ["/data"]'),
    "healthcheck": (
        "FROM debian:12\nHEALTHCHECK --interval=1m30s --retries=3 CMD curl -f x || exit 1\n",
        "--retries=3 CMD",
    ),
    "no healthcheck": ("FROM debian:12\nHEALTHCHECK NONE\n", "HEALTHCHECK NONE"),
    "stop signal": ("FROM debian:12\nSTOPSIGNAL SIGQUIT\n", "STOPSIGNAL SIGQUIT"),
    "add archive": (
        "FROM debian:12\nADD --chown=app:app rootfs.tar.xz /\n",
        'ADD --chown=app:app ["rootfs.tar.xz", "/"]',
    ),
    "add address": (
        "FROM debian:12\nADD https://example.org/a.tgz /tmp/\n",
        'ADD ["https://example.org/a.tgz", "/tmp/"]',
    ),
    "copy list": ('FROM debian:12\nCOPY ["a file.txt", "/b c/"]\n', "'a file.txt'"),
    "copy quotes": ('FROM debian:12\nCOPY "a.txt" "/x/"\n', 'COPY ["a.txt", "/x/"]'),
    "copy glob": ("FROM debian:12\nCOPY src/*.py tests/test_?.py /x/\n", '"src/*.py"'),
    "copy link": ("FROM debian:12\nCOPY --link --chown=1000:1000 . /x\n", "COPY --chown=1000:1000"),
    "windows line ends": ("FROM debian:12\r\nRUN a && \\\r\n  b\r\nCMD x\r\n", "a &&   b"),
    "windows escape": ("# escape=`\nFROM debian:12\nRUN a `\n  b\nENV P=C:\\dir\n", "ENV P='C:\\dir'"),
    "indented": ("  FROM debian:12\n\tRUN a\n", f'{SHELL}"a"]'),
    "mixed case": ("from debian:12 as Base\nrun a\nFrom base\n", "FROM stage-0 AS stage-1"),
    "no last line end": ("FROM debian:12\nRUN a", f'{SHELL}"a"]'),
    "unicode": ('FROM debian:12\nENV GREETING="grüße"\nRUN echo "→ done"\n', "grüße"),
    "several stages": ("FROM a AS x\nFROM x AS y\nFROM y\nCOPY --from=0 /a /b\n", 'COPY --from=stage-0 ["/a", "/b"]'),
    "empty entrypoint": ("FROM debian:12\nENTRYPOINT []\nCMD []\n", "ENTRYPOINT []"),
    "shell entrypoint": ("FROM debian:12\nENTRYPOINT exec top -b\n", f'ENTRYPOINT {SHELL}"exec top -b"]'),
    "secret": (
        "FROM debian:12\nRUN --mount=type=secret,id=t cat /run/secrets/t || true\n",
        "cat /run/secrets/t || true",
    ),
}


@pytest.mark.parametrize("name", CORPUS)
def test_what_people_write_is_understood(name: str) -> None:
    text, kept = CORPUS[name]
    done = rewrite(Recipe.read(text), {}).text
    assert is_canonical(done), done
    assert kept in done
    if not rewrite(Recipe.read(text), {}).files:
        assert rewrite(Recipe.read(done), {}).text == done


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.relative_to(path.parents[2])))
def test_our_samples_are_understood(path: Path) -> None:
    assert is_canonical(rewrite(Recipe.read(path.read_text()), {}).text)


def test_values_of_one_line_do_not_see_each_other() -> None:
    text = "FROM debian:12\nENV A=old\nENV A=new B=$A\nRUN true\n"
    assert rewrite(Recipe.read(text), {}).text.splitlines()[2:4] == ["ENV A='new'", "ENV B='old'"]


def test_the_base_s_variables_are_known() -> None:
    base = {"docker.io/library/debian:12": ImageConfig(env={"PATH": "/own", "X": "1"}, workdir="/w")}
    done = rewrite(Recipe.read("FROM debian:12\nENV PATH=/a:$PATH\nWORKDIR $X\n"), base).text.splitlines()
    assert done[1:] == ["ENV PATH='/a:/own'", "WORKDIR /w/1"]


def test_commands_are_what_the_shell_would_have_been_given() -> None:
    done = rewrite(Recipe.read("FROM debian:12\nRUN echo \"$HOME\"  'a  b' \\\\ | cat\n"), {}).text.splitlines()[1]
    assert json.loads(done.removeprefix("RUN ")) == ["/bin/sh", "-c", "echo \"$HOME\"  'a  b' \\\\ | cat"]
