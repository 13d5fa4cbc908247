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
from seatrial.engine.live.tail import PIECE, Tail, is_shown, stream_of
from seatrial.engine.trials.redaction import Redaction
from seatrial.system.growing_files import FileView

SECRET = "sk-canary-0123456789"
TRIAL = Trial(
    id=7,
    job_id=3,
    task=TaskRef(name="hello", digest="sha256:0"),
    agent_index=0,
    agent="oracle",
    model=None,
    attempt=1,
    try_number=2,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


class Try:
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
def a_try(tmp_path: Path) -> Try:
    return Try(tmp_path, SECRET)


def test_each_file_has_its_stream(a_try: Try) -> None:
    names = ("trial.log", "build.log", "agent/recording.cast", "agent/oracle.txt", "verifier/test-stdout.txt")
    for name in (*names, "result.json", "agent/trajectory.json", "agent/terminus_2.pane", "verifier/reward.txt"):
        a_try.write(name, '{"version": 2}\n')
    told = a_try.pieces()
    assert {piece.stream for piece in told} == set(OutputStream)
    assert len(told) == len(names) == len({stream_of(name) for name in names})
    assert {(piece.trial_id, piece.attempt) for piece in told} == {(7, 2)}
    assert a_try.pieces() == []
    assert not any(map(is_shown, ("config.json", "agent/x.png", "artifacts/a.txt", "steps/1/agent/a.txt")))


@given(text=st.text(max_size=60), cuts=st.lists(st.integers(0, 240), max_size=5))
def test_characters_are_never_torn(text: str, cuts: list[int]) -> None:
    data = text.replace("\0", "").encode()
    with tempfile.TemporaryDirectory() as folder:
        a_try = Try(Path(folder))
        told, start = "", 0
        for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
            a_try.write("trial.log", data[start:cut])
            told, start = told + a_try.told(), cut
        assert told == data.decode()


def test_what_is_no_text_is_told_as_well_as_it_can_be(a_try: Try) -> None:
    a_try.write("trial.log", b"a\xffb\x00c\xe2\x82")
    assert a_try.told() == "a�b␀c"
    assert a_try.told(last=True) == "�"


@given(before=st.integers(0, 30), cuts=st.lists(st.integers(0, 80), max_size=6), after=st.integers(0, 30))
def test_a_secret_is_never_told_wherever_it_is_cut(before: int, cuts: list[int], after: int) -> None:
    data = b"a" * before + SECRET.encode() + b"b" * after
    with tempfile.TemporaryDirectory() as folder:
        a_try = Try(Path(folder), SECRET, "xyxyxyxy")
        told, start = "", 0
        for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
            a_try.write("agent/log.txt", data[start:cut])
            told, start = told + a_try.told(), cut
        assert told + a_try.told(last=True) == f"{'a' * before}[REDACTED]{'b' * after}"


def test_only_what_may_be_a_secret_waits(a_try: Try) -> None:
    a_try.write("trial.log", "key: sk-cana")
    assert a_try.told() == "key: "
    a_try.write("trial.log", "ry of nobody")
    assert a_try.told() == "sk-canary of nobody"
    a_try.write("trial.log", "sk-canar")
    assert (a_try.told(), a_try.told(last=True)) == ("", "sk-canar")


def test_a_secret_that_repeats_itself_is_not_cut_in_two() -> None:
    redaction = Redaction(["xyxyxyxy"])
    assert redaction.safe_end(b"0 xyxyxyxy") == 2
    assert redaction.safe_end(b"0 xyxyxyxy.") == 11
    assert Redaction(["short"]).clean(b"short") == b"short"  # would blot out ordinary words


def test_a_recording_is_told_in_whole_lines(a_try: Try) -> None:
    a_try.write("agent/recording.cast", '{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "he')
    assert a_try.told() == '{"version": 2, "width": 80, "height": 24}\n'
    a_try.write("agent/recording.cast", f'llo {SECRET}"]\n')
    assert a_try.told() == '[0.1, "o", "hello [REDACTED]"]\n'


def test_a_long_event_becomes_several(a_try: Try) -> None:
    shown = "ü\x1b[1m" * 8000
    a_try.write("agent/recording.cast", json.dumps([1.5, "o", shown]) + "\n")
    pieces = a_try.pieces()
    assert max(len(piece.text) for piece in pieces) <= PIECE
    events = [json.loads(line) for piece in pieces for line in piece.text.splitlines()]
    assert {(at, kind) for at, kind, _ in events} == {(1.5, "o")}
    assert "".join(data for _, _, data in events) == shown


def test_a_file_that_begins_anew_is_told_from_its_beginning(a_try: Try) -> None:
    a_try.write("agent/recording.cast", '[1.0, "o", "first"]\n')
    assert "first" in a_try.told()
    (a_try.folder / "agent" / "recording.cast").write_text("{}\n")
    assert a_try.told() == "{}\n"


def test_pieces_are_bounded_and_a_flood_is_shortened(a_try: Try) -> None:
    a_try.write("trial.log", "".join(f"line {number}\n" for number in range(400_000)))
    first = a_try.pieces()
    assert max(len(piece.text) for piece in first) <= PIECE
    assert sum(len(piece.text) for piece in first) < 100_000
    assert "bytes were skipped" in first[-1].text
    rest = a_try.told(last=True)
    assert rest.startswith("line ")
    assert rest.endswith("line 399999\n")


def test_links_and_pipes_are_not_followed(a_try: Try) -> None:
    (a_try.folder / "agent" / "passwd.txt").symlink_to("/etc/passwd")
    (a_try.folder / "verifier").rmdir()
    (a_try.folder / "verifier").symlink_to("/var/log")
    os.mkfifo(a_try.folder / "agent" / "pipe.txt")
    a_try.write("agent/plain.txt", "seen")
    assert a_try.told() == "seen"


def test_a_copy_that_comes_out_of_the_sandbox_is_not_told_again(a_try: Try) -> None:
    name = "agent/oracle.txt"
    assert a_try.told(inside=[FileView(name, 0, 10, b"0123456789")]) == "0123456789"
    assert a_try.told(inside=[FileView(name, 10, 12, b"ab")]) == "ab"
    a_try.write(name, "01234567")  # an older copy
    assert a_try.told() == ""
    a_try.write(name, "89abcd")
    assert a_try.told() == "cd"


def test_a_file_that_went_away_is_forgotten(a_try: Try) -> None:
    name = "agent/oracle.txt"
    assert a_try.told(inside=[FileView(name, 0, 3, b"one")]) == "one"
    assert a_try.told(inside=[]) == ""
    assert a_try.told(inside=[FileView(name, 0, 6, b"second")]) == "second"
