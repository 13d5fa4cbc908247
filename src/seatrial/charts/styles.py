"""Colours and type of pictures and of the HTML report, for both themes. The page's own sheet has the same names."""

from __future__ import annotations

_LIGHT = {
    "ground": "#fbfcfc",
    "panel": "#ffffff",
    "ink": "#14201f",
    "soft": "#4a5a5c",
    "grid": "#dfe4e6",
    "heat": "#0f6b64",
    "s0": "#0f6b64",
    "s1": "#1d5fbf",
    "s2": "#8a5300",
    "s3": "#8e3b8f",
    "s4": "#b3261e",
    "s5": "#4a5a5c",
    "accent": "#0f6b64",
    "warn": "#8a5300",
}
_DARK = {
    "ground": "#0e1416",
    "panel": "#141c1f",
    "ink": "#e6eded",
    "soft": "#a9b8bb",
    "grid": "#263237",
    "heat": "#5fd0c3",
    "s0": "#5fd0c3",
    "s1": "#86b6ff",
    "s2": "#f0b357",
    "s3": "#d99be0",
    "s4": "#ff8f86",
    "s5": "#a9b8bb",
    "accent": "#5fd0c3",
    "warn": "#f0b357",
}
_TONES = ("ink", "soft", "grid", "heat", "s0", "s1", "s2", "s3", "s4", "s5")


def _variables(values: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in values.items())


def _themes(where: str) -> str:
    return f"{where}{{{_variables(_LIGHT)}}}@media(prefers-color-scheme:dark){{{where}{{{_variables(_DARK)}}}}}"


_DRAWN = "".join(f".t-{tone}{{--tone:var(--{tone})}}" for tone in _TONES) + (
    ".chart{font:12px ui-sans-serif,system-ui,'Segoe UI',Roboto,Arial,sans-serif;font-variant-numeric:tabular-nums}"
    ".chart .hit{fill:none;pointer-events:all}"
    ".chart .line{fill:none;stroke:var(--tone)}"
    ".chart .dashed{stroke-dasharray:4 3}"
    ".chart .box,.chart .sign{fill:var(--tone)}"
    ".chart .ring,.chart .cross{fill:none;stroke:var(--tone);stroke-width:1.8}"
    ".chart .label{fill:var(--tone);unicode-bidi:plaintext}"
    ".chart .small{font-size:11px}"
    ".chart .bold{font-weight:600}"
)
SVG_STYLES = _themes("svg.chart") + "svg.chart{background:var(--panel)}" + _DRAWN
"""For a picture in a file of its own."""
HTML_STYLES = (
    _themes(":root")
    + _DRAWN
    + "body{margin:0;background:var(--ground);color:var(--ink);font:14px/1.45 ui-sans-serif,system-ui,'Segoe UI',"
    "Roboto,Arial,sans-serif;font-variant-numeric:tabular-nums}"
    "main{max-width:60rem;margin:0 auto;padding:1rem}"
    "h1{font-size:1.3rem}h2{font-size:1.05rem;margin:0}"
    "figure{margin:1rem 0;padding:.8rem;border:1px solid var(--grid);border-radius:8px;background:var(--panel)}"
    "figure svg{display:block;max-width:100%;height:auto;margin:.6rem 0}"
    ".soft,figcaption p{color:var(--soft);margin:.3rem 0}"
    ".note{color:var(--warn);margin:.3rem 0}"
    ".wide{overflow-x:auto}"
    "table{border-collapse:collapse;margin:.5rem 0;font-size:13px}"
    "th,td{padding:.2rem .6rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}"
    "td{overflow-wrap:anywhere;min-width:4rem;unicode-bidi:plaintext}"
    "summary{cursor:pointer;color:var(--accent)}"
)
