"""Tables with a heading, for lists: of jobs, trials, tasks, images and so on.

On a terminal a table fits the width: first the least important columns go, then long names are shortened in the middle.
A file or a pipe gets every column in full. Nothing wraps.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from seatrial.cli.view.say import say
from seatrial.domain.terminal_text import harmless

_GAP = 2


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    """Numbers are aligned at the right."""
    least: int | None = None
    """Its texts are names, which may be shortened on a narrow terminal, not below this width."""
    prose: bool = False
    """Its texts are sentences, which are shortened at their end; names lose their middle."""
    rank: int = 0
    """The column with the highest rank is dropped first on a narrow terminal; 0 is never dropped. For the sake of a
    column of rank 1, names are shortened as far as possible."""


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Prints to standard output. The heading is bold on a terminal."""
    heading, *lines = table_lines(columns, rows, terminal_width())
    say(heading, bold=True)
    for line in lines:
        say(line)


def terminal_width() -> int | None:
    """``None`` if standard output is not a terminal: then nothing is shortened."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """The heading, then a line for each row."""
    cells = [[_one_line(text) for text in row] for row in rows]
    kept = [index for index in range(len(columns)) if width is None or _says_something(columns[index], cells, index)]
    widths = {index: max(cell_len(row[index]) for row in [_titles(columns), *cells]) for index in kept}
    if width is not None:
        _fit(widths, columns, width)
    for row in [_titles(columns), *cells]:
        yield _line(row, columns, widths)


def shorten(text: str, width: int, prose: bool = False) -> str:
    """Takes out the middle of a name, because names of models and tasks often differ at their ends."""
    if cell_len(text) <= width:
        return text
    tail = 0 if prose else (width - 1) // 2
    head = set_cell_size(text, width - 1 - tail).rstrip()
    start = len(text)
    while start and cell_len(text[start - 1 :]) <= tail:
        start -= 1
    return f"{head}…{text[start:].lstrip()}"


def _titles(columns: Sequence[Column]) -> list[str]:
    return [column.title for column in columns]


def _one_line(text: str) -> str:
    return harmless(" ".join(text.split()))


def _says_something(column: Column, cells: Sequence[Sequence[str]], index: int) -> bool:
    """A column that can be dropped is not shown if it is empty."""
    return not column.rank or any(row[index] for row in cells)


def _fit(widths: dict[int, int], columns: Sequence[Column], width: int) -> None:
    """Drops columns and narrows others until the table fits, as far as that is possible."""
    least = {index: min(size, columns[index].least or size) for index, size in widths.items()}
    readable = {index: min(size, 2 * (columns[index].least or size)) for index, size in widths.items()}
    for index in sorted((index for index in widths if columns[index].rank), key=lambda index: -columns[index].rank):
        if _total(least if columns[index].rank == 1 else readable) <= width:
            break
        del widths[index], least[index], readable[index]
    while _total(widths) > width:
        shrinkable = [index for index in widths if widths[index] > least[index]]
        if not shrinkable:
            return
        widths[max(shrinkable, key=lambda index: widths[index])] -= 1


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + _GAP * max(len(widths) - 1, 0)


def _line(row: Sequence[str], columns: Sequence[Column], widths: dict[int, int]) -> str:
    return (" " * _GAP).join(_padded(row[index], size, columns[index]) for index, size in widths.items()).rstrip()


def _padded(text: str, size: int, column: Column) -> str:
    shown = shorten(text, size, column.prose)
    space = " " * (size - cell_len(shown))
    return space + shown if column.right else shown + space
