"""Needs: what a task and an agent ask of a worker, as a short text, and what a worker lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.fleet.needs import Abilities, Needs, needs_of
from seatrial.domain.task import Resources, Task, TaskFormat


def task(memory_mb: int | None = None, cpus: float | None = None, **more: object) -> Task:
    wants = Resources(memory_mb=memory_mb, cpus=cpus, gpus=int(str(more.pop("gpus", 0))))
    base = Task(digest="sha256:0", name="t", format=TaskFormat.HARBOR, instruction="i", resources=wants)
    return base.model_copy(update=more)


words = st.text(max_size=20)


@given(
    memory_mb=st.none() | st.integers(1, 10**7),
    cpus=st.none() | st.integers(1, 4000).map(lambda number: number / 4),
    sandbox=words.filter(bool),
    gpus=st.integers(0, 64),
    elevated=st.booleans(),
    architecture=words,
    agent=words,
)
def test_every_text_reads_back(**values: object) -> None:
    needs = Needs.model_validate(values)
    assert Needs.parse(needs.text) == needs


def test_nothing_special_is_an_empty_text() -> None:
    assert Needs().text == "" and Needs.parse("") == Needs()


def test_a_word_of_a_newer_version_is_ignored() -> None:
    assert Needs.parse("memory_mb=512 moon=full shiny") == Needs(memory_mb=512)


@pytest.mark.parametrize(
    ("declared", "counted"), [(2048, 2048), (3072, 3072), (3000, 3072), (512, 512), (10240, 10240), (9000, 9216)]
)
def test_usual_amounts_stay_and_others_are_rounded_up(declared: int, counted: int) -> None:
    assert needs_of(task(memory_mb=declared), "auto", "oracle").memory_mb == counted


@given(memory=st.integers(1, 1 << 20))
def test_there_are_few_different_amounts(memory: int) -> None:
    counted = needs_of(task(memory_mb=memory), "auto", "oracle").memory_mb
    assert counted is not None and memory <= counted <= memory * 1.125 + 1


def test_what_the_task_and_the_agent_ask_for() -> None:
    wanted = task(512, 2, elevated=True, architecture="arm64")
    assert needs_of(wanted, "docker", "my.agents:Clever") == Needs(
        memory_mb=512, cpus=2, sandbox="docker", elevated=True, architecture="arm64", agent="my.agents:Clever"
    )
    assert needs_of(task(), "auto", "terminus-2") == Needs()


def test_several_services_need_an_engine() -> None:
    assert needs_of(task(services=("db",)), "oci", "oracle").sandbox == "harbor:docker"


def test_a_sandbox_elsewhere_takes_little_of_the_worker() -> None:
    needs = needs_of(task(65536, 32, gpus=8), "harbor:modal", "oracle")
    assert (needs.memory_mb, needs.cpus, needs.gpus) == (64, 0.25, 0)
    assert needs_of(task(65536, 32, gpus=8), "harbor:docker", "oracle").gpus == 8


def test_a_worker_that_says_nothing_lacks_nothing() -> None:
    assert Abilities().missing(Needs(sandbox="docker", gpus=1, elevated=True, agent="a:B", architecture="arm64")) == ""


@pytest.mark.parametrize(
    ("needs", "abilities", "words"),
    [
        (Needs(sandbox="docker"), Abilities(sandboxes=("oci",)), "the sandbox docker"),
        (Needs(), Abilities(sandboxes=()), "a sandbox that works"),
        (Needs(elevated=True), Abilities(elevated=False), "SEATRIAL_ALLOW_PRIVILEGED"),
        (Needs(agent="a:B"), Abilities(lacks=("a:B",)), "the agent a:B"),
        (Needs(gpus=2), Abilities(gpus=1), "2 GPUs"),
        (Needs(architecture="arm64"), Abilities(architecture="amd64"), "architecture arm64"),
    ],
)
def test_what_is_missing_is_said(needs: Needs, abilities: Abilities, words: str) -> None:
    assert words in abilities.missing(needs)
    assert abilities.missing(Needs(sandbox="harbor:modal")) == ""
