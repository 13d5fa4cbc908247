"""The wire formats that agents speak to models, as pure functions over bytes. The gateway does the input and output.

A format reads a request (``read_request``), prepares what is forwarded (``prepare``), reads an answer (``read_answer``)
or meters a stream (``meter``), and refuses in the provider's own shape (``refusal``).
See ``docs/decisions/wire-formats.md``.
"""

from seatrial.gateway.wire.differences import Difference, first_difference
from seatrial.gateway.wire.format import Answer, CallRequest, Refusal, RefusalKind, WireFormat
from seatrial.gateway.wire.json_text import BadCall, JsonObject, read_object
from seatrial.gateway.wire.meter import StreamMeter
from seatrial.gateway.wire.paths import FORMATS, format_of, models_answer, models_format, passing_query
from seatrial.gateway.wire.remote_content import remote_addresses
from seatrial.gateway.wire.replay import DIGEST_RULES, digest_of, steady_text
from seatrial.gateway.wire.tokens import AnswerTokens

__all__ = [
    "DIGEST_RULES",
    "FORMATS",
    "Answer",
    "AnswerTokens",
    "BadCall",
    "CallRequest",
    "Difference",
    "JsonObject",
    "Refusal",
    "RefusalKind",
    "StreamMeter",
    "WireFormat",
    "digest_of",
    "first_difference",
    "format_of",
    "models_answer",
    "models_format",
    "passing_query",
    "read_object",
    "remote_addresses",
    "steady_text",
]
