"""The canonical form of a document, whose digest names it."""

import hashlib
import json

from pydantic import BaseModel


def compute_digest(message: BaseModel) -> str:
    """Returns the SHA-256 of a message as JSON with sorted members and no spaces, absent members left out."""
    document = message.model_dump(mode="json")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
