"""Content that is compressed once and revalidated by its digest."""

import gzip
import hashlib

from fastapi import Request, Response

_ENCODING = "gzip"
_DIGEST_CHARACTERS = 32


class PackedContent:
    """Content of one media type, as it is and compressed. Browsers keep it and ask if it is still current."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self.media_type = media_type
        self.plain = content
        self.packed = gzip.compress(content, mtime=0)
        # Weak, because both encodings of the content share it.
        self.etag = f'W/"{hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]}"'

    def respond(self, request: Request, headers: dict[str, str] | None = None) -> Response:
        """Returns the content in an encoding that the caller accepts, or 304 if the caller has it."""
        own = {"ETag": self.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding", **(headers or {})}
        if self.etag.removeprefix("W/") in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=own)
        if not accepts_gzip(request.headers.get("accept-encoding", "")):
            return Response(self.plain, headers=own, media_type=self.media_type)
        return Response(
            self.packed, headers={**own, "Content-Encoding": _ENCODING}, media_type=self.media_type
        )


def accepts_gzip(accepted: str) -> bool:
    """Returns true if a value of Accept-Encoding names gzip, or any encoding, with a weight above zero."""
    weights = read_weights(accepted)
    return weights.get(_ENCODING, weights.get("*", 0.0)) > 0


def read_weights(accepted: str) -> dict[str, float]:
    """Reads the alternatives of an Accept header with their weights; one that cannot be read has none."""
    weights: dict[str, float] = {}
    for part in accepted.split(","):
        name, _, parameters = part.partition(";")
        _, _, weight = parameters.partition("q=")
        try:
            weights[name.strip().lower()] = float(weight) if weight else 1.0
        except ValueError:
            weights[name.strip().lower()] = 0.0
    return weights
