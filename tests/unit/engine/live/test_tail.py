"""What an attempt writes is told in pieces: whole characters, whole lines of a recording, never a secret."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.output import NewOutput, OutputStream
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Trial
from seatrial.engine.live.tail import PIECE, Tail, is_told, stream_of
from seatrial.engine.trials.redaction import Redaction
from seatrial.growing_files import FileView

SECRET = "sk-canary-0123456789"
TRIAL = Trial(
    id=7,
    job_id=3,
    task=TaskRef(name="hello", digest="sha256:0"),
    agent_index=0,
    agent="oracle",
    model=None,
    repeat=1,
    attempt=2,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


class Attempt:
    """A directory as an attempt has it, and its tail."""

    def __init__(self, folder: Path, *secrets: str) -> None:
        self.folder = folder
        for name in ("agent", "verifier"):
            (folder / name).mkdir()
        self.tail = Tail(TRIAL, folder, Redaction(secrets))

    def write(self, name: str, data: bytes | str) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def told(self, last: bool = False, inside: list[FileView] | None = None) -> str:
        return "".join(piece.text for piece in self.tail.read(inside, last))

    def pieces(self) -> list[NewOutput]:
        return self.tail.read(None)


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path, SECRET)


def test_each_file_has_its_stream(attempt: Attempt) -> None:
    names = ("trial.log", "build.log", "agent/recording.cast", "agent/oracle.txt", "verifier/test-stdout.txt")
    for name in (*names, "result.json", "agent/trajectory.json", "agent/terminus_2.pane", "verifier/reward.txt"):
        attempt.write(name, '{"version": 2}\n')
    told = attempt.pieces()
    assert {piece.stream for piece in told} == set(OutputStream)
    assert len(told) == len(names) == len({stream_of(name) for name in names})
    assert {(piece.trial_id, piece.attempt) for piece in told} == {(7, 2)}
    assert attempt.pieces() == []
    assert not any(map(is_told, ("config.json", "agent/x.png", "artifacts/a.txt", "steps/1/agent/a.txt")))


@given(text=st.text(max_size=60), cuts=st.lists(st.integers(0, 240), max_size=5))
def test_characters_are_never_torn(text: str, cuts: list[int]) -> None:
    data = text.replace("\0", "").encode()
    with tempfile.TemporaryDirectory() as folder:
        attempt = Attempt(Path(folder))
        told, start = "", 0
        for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
            attempt.write("trial.log", data[start:cut])
            told, start = told + attempt.told(), cut
        assert told == data.decode()


def test_what_is_no_text_is_told_as_well_as_it_can_be(attempt: Attempt) -> None:
    attempt.write("trial.log", b"a\xffb\x00c\xe2\x82")
    assert attempt.told() == "a�b␀c"
    assert attempt.told(last=True) == "�"


@given(before=st.integers(0, 30), cuts=st.lists(st.integers(0, 80), max_size=6), after=st.integers(0, 30))
def test_a_secret_is_never_told_wherever_it_is_cut(before: int, cuts: list[int], after: int) -> None:
    data = b"a" * before + SECRET.encode() + b"b" * after
    with tempfile.TemporaryDirectory() as folder:
        attempt = Attempt(Path(folder), SECRET, "xyxyxyxy")
        told, start = "", 0
        for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
            attempt.write("agent/log.txt", data[start:cut])
            told, start = told + attempt.told(), cut
        assert told + attempt.told(last=True) == f"{'a' * before}[REDACTED]{'b' * after}"


def test_only_what_may_be_a_secret_waits(attempt: Attempt) -> None:
    attempt.write("trial.log", "key: sk-cana")
    assert attempt.told() == "key: "
    attempt.write("trial.log", "ry of nobody")
    assert attempt.told() == "sk-canary of nobody"
    attempt.write("trial.log", "sk-canar")
    assert (attempt.told(), attempt.told(last=True)) == ("", "sk-canar")


def test_a_secret_that_repeats_itself_is_not_cut_in_two() -> None:
    redaction = Redaction(["xyxyxyxy"])
    assert redaction.safe_end(b"0 xyxyxyxy") == 2
    assert redaction.safe_end(b"0 xyxyxyxy.") == 11
    assert Redaction(["short"]).clean(b"short") == b"short"  # would blot out ordinary words


def test_a_recording_is_told_in_whole_lines(attempt: Attempt) -> None:
    attempt.write("agent/recording.cast", '{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "he')
    assert attempt.told() == '{"version": 2, "width": 80, "height": 24}\n'
    attempt.write("agent/recording.cast", f'llo {SECRET}"]\n')
    assert attempt.told() == '[0.1, "o", "hello [REDACTED]"]\n'


def test_a_long_event_becomes_several(attempt: Attempt) -> None:
    shown = "ü\x1b[1m" * 8000
    attempt.write("agent/recording.cast", json.dumps([1.5, "o", shown]) + "\n")
    pieces = attempt.pieces()
    assert max(len(piece.text) for piece in pieces) <= PIECE
    events = [json.loads(line) for piece in pieces for line in piece.text.splitlines()]
    assert {(at, kind) for at, kind, _ in events} == {(1.5, "o")}
    assert "".join(data for _, _, data in events) == shown


def test_a_file_that_begins_anew_is_told_from_its_beginning(attempt: Attempt) -> None:
    attempt.write("agent/recording.cast", '[1.0, "o", "first"]\n')
    assert "first" in attempt.told()
    (attempt.folder / "agent" / "recording.cast").write_text("{}\n")
    assert attempt.told() == "{}\n"


def test_pieces_are_bounded_and_a_flood_is_shortened(attempt: Attempt) -> None:
    attempt.write("trial.log", "".join(f"line {number}\n" for number in range(400_000)))
    first = attempt.pieces()
    assert max(len(piece.text) for piece in first) <= PIECE
    assert sum(len(piece.text) for piece in first) < 100_000
    assert "bytes were left out" in first[-1].text
    rest = attempt.told(last=True)
    assert rest.startswith("line ")
    assert rest.endswith("line 399999\n")


def test_links_and_pipes_are_not_followed(attempt: Attempt) -> None:
    (attempt.folder / "agent" / "passwd.txt").symlink_to("/etc/passwd")
    (attempt.folder / "verifier").rmdir()
    (attempt.folder / "verifier").symlink_to("/var/log")
    os.mkfifo(attempt.folder / "agent" / "pipe.txt")
    attempt.write("agent/plain.txt", "seen")
    assert attempt.told() == "seen"


def test_a_copy_that_comes_out_of_the_sandbox_is_not_told_again(attempt: Attempt) -> None:
    name = "agent/oracle.txt"
    assert attempt.told(inside=[FileView(name, 0, 10, b"0123456789")]) == "0123456789"
    assert attempt.told(inside=[FileView(name, 10, 12, b"ab")]) == "ab"
    attempt.write(name, "01234567")  # an older copy
    assert attempt.told() == ""
    attempt.write(name, "89abcd")
    assert attempt.told() == "cd"


def test_a_file_that_went_away_is_forgotten(attempt: Attempt) -> None:
    name = "agent/oracle.txt"
    assert attempt.told(inside=[FileView(name, 0, 3, b"one")]) == "one"
    assert attempt.told(inside=[]) == ""
    assert attempt.told(inside=[FileView(name, 0, 6, b"second")]) == "second"
