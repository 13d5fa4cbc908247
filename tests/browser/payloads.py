"""Fifty things that text from a task, a sandbox or an agent may try on whoever looks at it.

Those of ``MARKUP`` run a script, open a dialog or ask another server for something where they are taken for markup;
those of ``ESCAPES`` speak to a terminal. Each has a word of its own, so that a test can tell that it is on the page.
"""

from __future__ import annotations

_RUN = "window.__xss=1"

_MARKUP = (
    f"<script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<iframe srcdoc='<script>parent.__xss=1</script>'></iframe>",  # noqa: F541
    f'<iframe src="javascript:parent.{_RUN.removeprefix("window.")}"></iframe>',
    f"<body onload={_RUN}>",
    f"<details open ontoggle={_RUN}>",
    f"<video><source onerror={_RUN}></video>",
    f"<audio src=x onerror={_RUN}>",
    f"<input autofocus onfocus={_RUN}>",
    f"<select autofocus onfocus={_RUN}>",
    f"<marquee onstart={_RUN}>",
    f'<object data="javascript:{_RUN}">',
    f'<embed src="javascript:{_RUN}">',
    f'<a href="javascript:{_RUN}">',
    f'<form action="javascript:{_RUN}"><button>',
    f'<math href="javascript:{_RUN}">',
    "<meta http-equiv=refresh content='0;url=http://evil.invalid/'>",
    "<link rel=stylesheet href=http://evil.invalid/x.css>",
    "<style>@import 'http://evil.invalid/y.css';</style>",
    "<base href=http://evil.invalid/>",
    "<img src=http://evil.invalid/pixel.png>",
    f'"><script>{_RUN}</script>',
    f"' onmouseover='{_RUN}' x='",
    f"</title><script>{_RUN}</script>",
    f"</textarea><script>{_RUN}</script>",
    f"--><script>{_RUN}</script>",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
    f"<IMG SRC=x OnErRoR={_RUN}>",
    f"<img src=`x` onerror={_RUN}>",
    f"<template><script>{_RUN}</script></template><img src=x onerror={_RUN}>",
    f"{{{{constructor.constructor('{_RUN}')()}}}}",
    f"${{{_RUN}}}",
    f"[click](javascript:{_RUN})",
    f"&lt;img src=x onerror={_RUN}&gt;",
    f"\u202e<img src=x onerror={_RUN}>",
)
_ESCAPES = (
    "\x1b]0;stolen title\x07",
    "\x1b]2;stolen title\x1b\\",
    "\x1b]8;;javascript:window.__xss=1\x07a link\x1b]8;;\x07",
    "\x1b]8;;http://evil.invalid/\x1b\\a link\x1b]8;;\x1b\\",
    "\x1b]52;c;c3RvbGVu\x07",
    "\x1b]1337;File=inline=1;width=9:PHNjcmlwdD4=\x07",
    "\x1bP$qm\x1b\\\x1b[c\x1b[6n\x1b[>c",
    "\x1b[21t\x1b[8;999;999t\x1b[3;0;0t",
    "\x1b[31m<img src=x onerror=window.__xss=1>\x1b[0m",
    "\x1b[?1003h\x1b[?2004h\x1b[?1049h",
    "\x9d0;stolen title\x9c",
    "\x1b[38;2;999;-1;url(http://evil.invalid/)m<b>x</b>\x1b[0m",
)


def _marked(texts: tuple[str, ...], word: str) -> tuple[str, ...]:
    return tuple(f"{word}{number:02d} {text} end" for number, text in enumerate(texts))


MARKUP = _marked(_MARKUP, "mk")
ESCAPES = _marked(_ESCAPES, "esc")
PAYLOADS = MARKUP + ESCAPES

assert len(set(PAYLOADS)) == 50
