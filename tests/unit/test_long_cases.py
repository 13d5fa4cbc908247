"""What ``make test`` leaves out: never a case on ``oci``, and never a whole test on ``docker``."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.long_cases import WHOLE, WITH_HARBORS, mark_long_cases


@dataclass(frozen=True)
class Callspec:
    params: dict[str, object]


@dataclass(frozen=True)
class Item:
    nodeid: str
    callspec: Callspec
    markers: list[str] = field(default_factory=list)

    def add_marker(self, name: str) -> None:
        self.markers.append(name)

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.markers else None


def items(file: str, *, own: tuple[str, ...] = ()) -> list[Item]:
    return [
        Item(f"{file}::{test}[{kind}-{case}]", Callspec({"kind": kind, "case": case}), ["long"] if case in own else [])
        for test in ("test_one", "test_other")
        for kind in ("oci", "docker", "harbor:docker")
        for case in ("a", "b", "c")
    ]


def left_out(found: list[Item]) -> set[str]:
    mark_long_cases(found)  # type: ignore[arg-type]
    return {item.nodeid.partition("::test_")[2] for item in found if "long" in item.markers}


def test_every_test_runs_whole_on_oci_and_once_on_docker() -> None:
    further = {*(f"[docker-{case}]" for case in "bc"), *(f"[harbor:docker-{case}]" for case in "abc")}
    assert left_out(items("tests/a.py")) == {f"{test}{case}" for test in ("one", "other") for case in further}


def test_harbors_own_runs_once_in_one_file() -> None:
    further = {f"[{kind}-{case}]" for kind in ("docker", "harbor:docker") for case in "bc"}
    assert left_out(items(WITH_HARBORS)) == {f"{test}{case}" for test in ("one", "other") for case in further}


def test_a_case_that_is_marked_already_is_not_the_one_that_stays() -> None:
    assert "one[docker-b]" not in left_out(items("tests/a.py", own=("a",)))


def test_a_file_that_is_named_stays_whole() -> None:
    assert left_out(items(WHOLE[0])) == set()
