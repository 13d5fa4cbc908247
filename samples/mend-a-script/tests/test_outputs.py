"""The script is run, never imported, on the given numbers and on others."""

import subprocess


def average_of(path):
    done = subprocess.run(["python3", "/app/average.py", str(path)], capture_output=True, text=True, timeout=20)
    return done.stdout.strip()


def test_the_given_numbers():
    assert average_of("/app/numbers.txt") == "18.00"


def test_other_numbers(tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("1\n2\n3.5\n")
    assert average_of(other) == "2.17"


def test_empty_lines_do_not_count(tmp_path):
    gaps = tmp_path / "gaps.txt"
    gaps.write_text("\n10\n\n\n20\n\n")
    assert average_of(gaps) == "15.00"
