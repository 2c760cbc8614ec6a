"""The client of Ironlaw: capacity planning for machine learning over HTTP."""

from .client import AsyncIronlaw, Ironlaw
from .core import etag_of, headers_of
from .errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    InvalidSignature,
    IronlawError,
    NotFound,
    Problem,
    RateLimited,
    ServiceUnavailable,
    ServiceUnreachable,
    Unauthenticated,
    VersionConflict,
    WaitTimeout,
)
from .version import __version__
from .webhooks import verify_webhook

__all__ = [
    "AsyncIronlaw",
    "Conflict",
    "Forbidden",
    "InvalidRequest",
    "InvalidSignature",
    "Ironlaw",
    "IronlawError",
    "NotFound",
    "Problem",
    "RateLimited",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "Unauthenticated",
    "VersionConflict",
    "WaitTimeout",
    "__version__",
    "etag_of",
    "headers_of",
    "verify_webhook",
]
