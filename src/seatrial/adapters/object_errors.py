"""Says why an object store failed, without credentials that the server's answer or a URL may contain.

obstore quotes the server's answer and the whole URL. S3 answers a wrong signature with the request as it was signed,
session token included, and the URL of a token service carries the token. So only the status, a known error code and
the kind of network error are kept. The original exception is not chained: a traceback in a log would print it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from seatrial.errors import NotFound, SeatrialError, StorageFull, StoreUnavailable

_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z]*)*)")
_CODE = re.compile(r"<Code>([A-Za-z.]{1,64})</Code>")
_KINDS = re.compile(r"timed? ?out|refused|reset|closed|certificate|dns|connect|decod|sending request", re.IGNORECASE)
_FULL = frozenset({"XMinioStorageFull", "QuotaExceeded", "InsufficientCapacity", "NotEnoughStorage"})
_KNOWN_CODES = _FULL | {
    "AccessDenied", "AccountProblem", "AllAccessDisabled", "AuthorizationHeaderMalformed", "BadDigest",
    "EntityTooLarge", "ExpiredToken", "IllegalLocationConstraintException", "InternalError", "InvalidAccessKeyId",
    "InvalidBucketName", "InvalidEncryptionAlgorithmError", "InvalidRequest", "InvalidToken", "KMS.DisabledException",
    "KMS.NotFoundException", "MissingSecurityHeader", "NoSuchBucket", "NoSuchUpload", "OperationAborted",
    "PermanentRedirect", "RequestTimeTooSkewed", "RequestTimeout", "ServiceUnavailable", "SignatureDoesNotMatch",
    "SlowDown", "TemporaryRedirect", "TokenRefreshRequired", "TooManyRequests", "UnauthorizedAccess",
}  # fmt: skip
"""A server could put anything into its code, a token that was sent to it for one."""
_FIXES = {
    "RequestTimeTooSkewed": "Set the clock of this machine.",
    "NoSuchBucket": "Make the bucket, or set SEATRIAL_BLOBS_URL to one.",
    "PermanentRedirect": "Set SEATRIAL_S3_REGION to the bucket's region.",
    "AuthorizationHeaderMalformed": "Set SEATRIAL_S3_REGION to the bucket's region.",
}
_NO_ACCESS = "Check the credentials and what they may do in that bucket."


class PastTheEnd(StoreUnavailable):
    """The server refused a range, which it does if the range begins behind the end."""


@contextmanager
def boundary(key: str, *, writing: bool = False) -> Iterator[None]:
    """Turns obstore's exceptions into ours. A missing bucket is ``NotFound`` for a write, which looks up nothing."""
    try:
        yield
    except (BaseError, OSError) as fault:
        error = _error_of(fault, key, writing)
    else:
        return
    raise error from None


def reason(fault: Exception) -> str:
    """A few words that hold no secret."""
    text = str(fault)
    if status := _STATUS.search(text):
        code = _code(text)
        return f"it answered {status[1]}" + (f" ({code})" if code else "")
    if "Error performing" not in text:
        return text.splitlines()[0][:200] if isinstance(fault, OSError) and text else type(fault).__name__
    kinds = dict.fromkeys(found.lower() for found in _KINDS.findall(text))
    return "it could not be reached" + (f" ({', '.join(list(kinds)[:4])})" if kinds else "")


def _error_of(fault: Exception, key: str, writing: bool) -> SeatrialError:
    text, code = str(fault), _code(str(fault))
    if isinstance(fault, FileNotFoundError) and (writing or code != "NoSuchBucket"):
        return NotFound(f"There is no file {key}.")
    if f"(os error {errno.ENOTDIR})" in text:  # a part of the key is itself a key
        return NotFound(f"There is no file {key}.")
    full = f"(os error {errno.ENOSPC})" in text or getattr(fault, "errno", None) == errno.ENOSPC
    if full or code in _FULL or "status code: 507" in text:
        return StorageFull(f"There is no space left to store {key}.")
    if "status code: 416" in text:
        return PastTheEnd(f"The blob store has no such range of {key}.")
    fix = _FIXES.get(code, _NO_ACCESS if isinstance(fault, PermissionDeniedError | UnauthenticatedError) else "")
    return StoreUnavailable(f"The blob store failed at {key}: {reason(fault)}.", fix=fix)


def _code(text: str) -> str:
    found = _CODE.search(text)
    return found[1] if found and found[1] in _KNOWN_CODES else ""
