"""Writes a picture as SVG: text as text, a title and a description for those who do not see it, colours by class."""

from __future__ import annotations

from seatrial.charts.markup import Markup, element
from seatrial.charts.scene import Box, Chart, Label, Line, Mark, Shape, Sign, Spot
from seatrial.charts.styles import SVG_STYLES

NAMESPACE = "http://www.w3.org/2000/svg"


def svg_file(chart: Chart) -> str:
    """A file of its own, with its styles."""
    styles = element("style", Markup(SVG_STYLES))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + svg(chart, styles) + "\n"


def svg(chart: Chart, *first: Markup) -> Markup:
    """An element for a page that has the styles. ``first``: elements to put before the drawing."""
    drawing, name = chart.drawing, chart.name.value
    told = " ".join((chart.summary, *chart.notes))
    return element(
        "svg",
        element("title", chart.title, id=f"{name}-title"),
        element("desc", told, id=f"{name}-desc"),
        *first,
        *map(_mark, drawing.marks),
        *map(_spot, drawing.spots),
        xmlns=NAMESPACE,
        class_="chart",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        width=drawing.width,
        height=drawing.height,
        viewBox=f"0 0 {drawing.width:g} {drawing.height:g}",
    )


def _spot(spot: Spot) -> Markup:
    area = spot.area
    hit = element("rect", x=area.x, y=area.y, width=area.width, height=area.height, class_="hit")
    return element("g", element("title", spot.text), hit, *map(_mark, spot.marks))


def _mark(mark: Mark) -> Markup:
    match mark:
        case Line():
            points = " ".join(f"{x:g},{y:g}" for x, y in mark.points)
            look = f"line t-{mark.tone}{' dashed' if mark.dashed else ''}"
            return element("polyline", points=points, class_=look, stroke_width=mark.width)
        case Box():
            return element(
                "rect",
                x=mark.x,
                y=mark.y,
                width=mark.width,
                height=mark.height,
                rx=2,
                class_=f"box t-{mark.tone}",
                fill_opacity=mark.strength,
            )
        case Sign():
            return _sign(mark)
        case Label():
            look = f"label t-{mark.tone}{' small' if mark.small else ''}{' bold' if mark.bold else ''}"
            return element("text", mark.text, x=mark.x, y=mark.y, class_=look, text_anchor=mark.anchor.value)


def _sign(mark: Sign) -> Markup:
    look, size = f"sign t-{mark.tone} {mark.shape}", mark.size
    if mark.shape in (Shape.DOT, Shape.RING):
        return element("circle", cx=mark.x, cy=mark.y, r=size if mark.shape is Shape.DOT else size - 1, class_=look)
    return element("path", d=_outline(mark.shape, mark.x, mark.y, size), class_=look)


def _outline(shape: Shape, x: float, y: float, size: float) -> str:
    """A path. ``web/src/parts/charts/Marks.tsx`` has the same one."""
    s = size
    match shape:
        case Shape.SQUARE:
            return f"M{x - s:g} {y - s:g}h{2 * s:g}v{2 * s:g}h{-2 * s:g}z"
        case Shape.DIAMOND:
            return f"M{x:g} {y - s:g}L{x + s:g} {y:g}L{x:g} {y + s:g}L{x - s:g} {y:g}z"
        case Shape.TRIANGLE:
            return f"M{x:g} {y - s:g}L{x + s:g} {y + s:g}L{x - s:g} {y + s:g}z"
        case _:
            return f"M{x - s:g} {y - s:g}L{x + s:g} {y + s:g}M{x + s:g} {y - s:g}L{x - s:g} {y + s:g}"
