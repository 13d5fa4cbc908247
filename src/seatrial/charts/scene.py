"""A picture as data: marks with positions, in pixels, and the table behind it.

The page and ``svg`` draw the same marks, so that geometry has one rule. Colours and shapes are names; style sheets say
how they look. Every text is plain text, already cut to its room.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from seatrial.domain.frozen import Frozen


class Tone(StrEnum):
    """A name that style sheets give a colour in each theme."""

    INK = "ink"
    SOFT = "soft"
    GRID = "grid"
    HEAT = "heat"
    S0 = "s0"
    S1 = "s1"
    S2 = "s2"
    S3 = "s3"
    S4 = "s4"
    S5 = "s5"


class Shape(StrEnum):
    """Series differ in shape, too, not in colour alone."""

    DOT = "dot"
    SQUARE = "square"
    DIAMOND = "diamond"
    TRIANGLE = "triangle"
    CROSS = "cross"
    RING = "ring"


class Anchor(StrEnum):
    START = "start"
    MIDDLE = "middle"
    END = "end"


class Line(Frozen):
    kind: Literal["line"] = "line"
    points: tuple[tuple[float, float], ...]
    tone: Tone
    width: float = 1.0
    dashed: bool = False


class Box(Frozen):
    kind: Literal["box"] = "box"
    x: float
    y: float
    width: float
    height: float
    tone: Tone
    strength: float = 1.0
    """Opacity of the fill, 0 … 1."""


class Sign(Frozen):
    kind: Literal["sign"] = "sign"
    x: float
    y: float
    shape: Shape
    tone: Tone
    size: float = 5.0


class Label(Frozen):
    kind: Literal["label"] = "label"
    x: float
    y: float
    """The baseline."""
    text: str
    tone: Tone = Tone.INK
    anchor: Anchor = Anchor.START
    small: bool = False
    bold: bool = False


type Mark = Annotated[Line | Box | Sign | Label, Field(discriminator="kind")]


class Area(Frozen):
    x: float
    y: float
    width: float
    height: float


class Spot(Frozen):
    """Marks that stand for one value: pointing at them says the value."""

    text: str
    marks: tuple[Mark, ...]
    area: Area
    """Where pointing counts: around all marks, since a thin line is hard to hit."""
    to: str | None = None
    """A path of the page that shows what is behind the value."""


class Drawing(Frozen):
    width: float
    height: float
    marks: tuple[Mark, ...]
    """Axes, grids and legends."""
    spots: tuple[Spot, ...]


class ChartTable(Frozen):
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ChartName(StrEnum):
    FOREST = "forest"
    COST = "cost"
    TIME = "time"
    TASKS = "tasks"
    ATTEMPTS = "attempts"
    DURATIONS = "durations"
    TOKENS = "tokens"
    TREND = "trend"


class Chart(Frozen):
    name: ChartName
    title: str
    summary: str
    """What the picture shows and how to read it, for those who do not see it, too."""
    notes: tuple[str, ...] = ()
    """What is missing from the picture, and why."""
    drawing: Drawing
    table: ChartTable
    """Every value of the picture."""


class Charts(Frozen):
    items: tuple[Chart, ...]
