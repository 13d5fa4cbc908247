"""What the pictures share: collecting marks, axes, legends, and the look of a series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seatrial.charts.scale import Scale
from seatrial.charts.scene import Anchor, Area, Box, Drawing, Label, Line, Mark, Shape, Sign, Spot, Tone
from seatrial.charts.words import fitted

MARGIN = 12.0
LETTER, SMALL = 12.0, 11.0
"""Height of letters, as in the style sheets."""
_TONES = (Tone.S0, Tone.S1, Tone.S2, Tone.S3, Tone.S4, Tone.S5)
_SHAPES = tuple(Shape)
_LEGEND_ROW = 19.0
_NEAR, _SOME = 4.0, 60.0


def tone_of(series: int) -> Tone:
    return _TONES[series % len(_TONES)]


def shape_of(series: int) -> Shape:
    """Together with the tone distinct for 36 series."""
    return _SHAPES[(series + series // len(_TONES)) % len(_SHAPES)]


@dataclass
class Canvas:
    width: float
    marks: list[Mark] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)

    @property
    def right(self) -> float:
        return self.width - MARGIN

    def add(self, *marks: Mark) -> None:
        self.marks += marks

    def spot(self, text: str, *marks: Mark, to: str | None = None) -> None:
        self.spots.append(Spot(text=text, marks=marks, area=_around(marks, self.width), to=to))

    def say(self, x: float, y: float, text: str, *, room: float | None = None, tone: Tone = Tone.SOFT) -> None:
        """A small text, cut to its room."""
        size = self.right - x if room is None else room
        self.add(Label(x=x, y=y, text=fitted(text, size, SMALL), tone=tone, small=True))

    def drawing(self, height: float) -> Drawing:
        return Drawing(width=self.width, height=height, marks=tuple(self.marks), spots=tuple(self.spots))


def _around(marks: Sequence[Mark], width: float) -> Area:
    """Of a text only the beginning counts: its width is not known."""
    corners: list[tuple[float, float]] = []
    for mark in marks:
        match mark:
            case Line():
                corners += [(x + side, y + side) for x, y in mark.points for side in (-_NEAR, _NEAR)]
            case Box():
                corners += [(mark.x, mark.y), (mark.x + mark.width, mark.y + mark.height)]
            case Sign():
                corners += [(mark.x + side, mark.y + side) for side in (-mark.size, mark.size)]
            case Label():
                corners += [(mark.x, mark.y - LETTER), (mark.x, mark.y + _NEAR)]
                corners += [(mark.x + _SOME, mark.y)] if mark.anchor is Anchor.START else []
    left, right = max(0.0, min(x for x, _ in corners)), min(width, max(x for x, _ in corners))
    top, bottom = (edge(y for _, y in corners) for edge in (min, max))
    return Area(x=round(left, 2), y=round(top, 2), width=round(right - left, 2), height=round(bottom - top, 2))


def empty(width: float, why: str) -> Drawing:
    """A picture without data says so, on as many lines as that takes."""
    canvas = Canvas(width)
    y = 30.0
    for line in wrapped(why, width - 2 * MARGIN):
        canvas.add(Label(x=width / 2, y=y, text=line, tone=Tone.SOFT, anchor=Anchor.MIDDLE))
        y += 18
    return canvas.drawing(y + 10)


def wrapped(text: str, room: float, size: float = LETTER) -> list[str]:
    """Our own sentences, on lines of at most ``room`` pixels."""
    most = max(8, int(room / (size * 0.55)))
    lines = [""]
    for word in text.split():
        fits = len(lines[-1]) + 1 + len(word) <= most
        lines = [*lines[:-1], f"{lines[-1]} {word}".strip()] if fits or not lines[-1] else [*lines, word]
    return lines


def axis_below(
    canvas: Canvas, scale: Scale, top: float, bottom: float, text: Callable[[float], str], title: str
) -> None:
    """Lines across the plot at round values, with the values below."""
    most = max(2, int((scale.end - scale.start) / 70))
    for value in scale.ticks(min(5, most)):
        x = scale.at(value)
        canvas.add(
            Line(points=((x, top), (x, bottom)), tone=Tone.GRID),
            Label(x=x, y=bottom + 15, text=text(value), tone=Tone.SOFT, anchor=Anchor.MIDDLE, small=True),
        )
    middle = (scale.start + scale.end) / 2
    canvas.add(Label(x=middle, y=bottom + 31, text=title, tone=Tone.SOFT, anchor=Anchor.MIDDLE, small=True))


def axis_beside(canvas: Canvas, scale: Scale, left: float, right: float, text: Callable[[float], str]) -> None:
    for value in scale.ticks():
        y = scale.at(value)
        canvas.add(
            Line(points=((left, y), (right, y)), tone=Tone.GRID),
            Label(x=left - 6, y=y + 4, text=text(value), tone=Tone.SOFT, anchor=Anchor.END, small=True),
        )


def legend(canvas: Canvas, y: float, entries: Sequence[tuple[int, str]]) -> float:
    """One row for each series: its sign and its name. Returns where the next thing may begin."""
    for series, name in entries:
        canvas.add(
            Sign(x=MARGIN + 6, y=y, shape=shape_of(series), tone=tone_of(series)),
            Label(x=MARGIN + 18, y=y + 4, text=fitted(name, canvas.right - MARGIN - 18)),
        )
        y += _LEGEND_ROW
    return y


def whole_percent(share: float) -> str:
    return f"{100 * share:.0f} %"
