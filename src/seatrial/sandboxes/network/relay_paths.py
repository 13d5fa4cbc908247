"""What may be asked of a model's address through the relay: the calls that agents make, and nothing else beside them.

A provider has more under the same base and the same key: files, batches, fine-tuning, organisations, billing. Paths are
compared as they are. One that is written in any other way (escapes, dots, empty parts, parameters) is none of these.
"""

from __future__ import annotations

import re

from seatrial.plain_http import BadRequest

_NAME = r"(?!\.+(?:/|:|$))[A-Za-z0-9._@-]+"
_VERSION = r"(?:v[0-9](?:alpha|beta)?[0-9]?/)?"
_DEPLOYMENT = rf"(?:openai/deployments/{_NAME}/)?"
_ASKED = re.compile(
    rf"{_VERSION}{_DEPLOYMENT}(?:chat/completions|completions|responses|responses/compact|messages|"
    rf"messages/count_tokens|embeddings|chat|api/chat|api/generate|api/embed|api/show|"
    rf"models/{_NAME}:(?:generateContent|streamGenerateContent|countTokens|embedContent))"
)
_LISTED = re.compile(rf"{_VERSION}models(?:/{_NAME}(?::{_NAME})?){{0,3}}")
_QUERY = re.compile(r"[A-Za-z0-9_.~%&=+,:@$-]{0,1024}")
_OPEN = {"POST": _ASKED, "GET": _LISTED}


def check_target(method: str, target: str, base: str) -> None:
    """``BadRequest`` unless this is one of the open calls below ``base``."""
    if method not in _OPEN:
        raise BadRequest(405, "Models are asked by GET and POST.")
    path, _, query = target.partition("?")
    inside = path.startswith(f"{base}/") and _OPEN[method].fullmatch(path[len(base) + 1 :])
    if not inside or not _QUERY.fullmatch(query):
        raise BadRequest(403, f"Only calls of models are open below {base or '/'}, such as POST …/chat/completions.")
