"""Terminal output as text: what was seen stays, what steered the terminal goes, and no input takes long."""

from __future__ import annotations

import json
import time

import pytest

from seatrial.domain.terminal_text import readable, shown


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("plain\n  text\twith é and 漢\n", "plain\n  text\twith é and 漢\n"),
        ("\x1b[1;31mFAILED\x1b[0m test_a", "FAILED test_a"),
        ("\x1b[?2004hroot@st:/app# ls\r\n\x1b[?2004l\rhello\r\n", "root@st:/app# ls\nhello\n"),
        ("\x1b[H\x1b[J\x1b[3Jclean", "clean"),
        ("\x1b]0;a title\x07$ \x1b]8;;http://a.example\x1b\\link\x1b]8;;\x1b\\", "$ link"),
        ("\x1b(Bbox\x1b= \x1bM\x07beep\x08", "box beep"),
        (" 10%\r 50%\r100%\r\ndone", "100%\ndone"),
        ("a string that never ends: \x1b]0;title and text", "a string that never ends: 0;title and text"),
        ("[1] is no sequence", "[1] is no sequence"),
    ],
)
def test_what_was_seen_stays(written: str, seen: str) -> None:
    assert readable(written) == seen


def test_a_recording_is_what_its_terminal_showed() -> None:
    events = [[0.1, "o", "$ "], [0.2, "i", "ls\r"], [0.3, "o", "ls\r\nhello\u2028\r\n"], [0.4, "r", "80x24"]]
    lines = [json.dumps({"version": 2, "width": 80}), *(json.dumps(event, ensure_ascii=False) for event in events)]
    assert shown("\n".join(lines)) == "$ ls\r\nhello\u2028\r\n"


@pytest.mark.parametrize(
    "broken", ["", "no JSON", '[0.1, "o"]', '[0.1, "o", 7]', '"o"', "null", "[" * 100_000, '[0.1, "o']
)
def test_broken_lines_of_a_recording_are_left_out(broken: str) -> None:
    assert shown(f'[1, "o", "before "]\n{broken}\n[2, "o", "after"]\n') == "before after"


@pytest.mark.parametrize("piece", ["\x1b]", "\x1b[", "\x1b[0", "\x1b  ", "\x1bP", "\r", "x", "0;"])
def test_the_time_grows_with_the_text_only(piece: str) -> None:
    """A sandbox writes it: what took the square of its length would stop the service for minutes.

    Of this thread's processor time it takes about 0.02 s, and the limit is a hundred times that."""
    began = time.thread_time()
    readable("\x1b]" + piece * (600_000 // len(piece)))
    assert time.thread_time() - began < 2
