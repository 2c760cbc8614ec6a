"""Time stamps of an authority (RFC 3161), requested by the guarded client and checked against the request."""

import asyncio
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from service.audit.exports import TimeStampFailed
from service.kit.http.outbound import OutboundClient, OutboundRefused

MOST_BYTES: Final = 64 * 1024
_OK: Final = 200
_HEADERS: Final = {"content-type": "application/timestamp-query", "accept": "application/timestamp-reply"}
_GRANTED: Final = frozenset({0, 1})
"""Status "granted", without or with modifications (RFC 3161, section 2.4.2)."""


@dataclass(frozen=True, slots=True)
class TimeStampAuthority:
    """A time stamp authority at an address."""

    url: str
    outbound: OutboundClient

    def stamp(self, data: bytes) -> bytes:
        """Returns the unmodified answer of the authority, after a check of its data and nonce.

        Its signature must be verified with the authority's certificate, for example by ``openssl ts
        -verify``.
        """
        from rfc3161_client import (  # noqa: PLC0415  # few ask for time stamps
            HashAlgorithm,
            TimestampRequestBuilder,
            decode_timestamp_response,
        )

        asked = TimestampRequestBuilder(data, HashAlgorithm.SHA256).build()
        content = asyncio.run(self._request_stamp(asked.as_bytes()))
        try:
            answer = decode_timestamp_response(content)
            if answer.status not in _GRANTED:
                raise TimeStampFailed("NOT_GRANTED")
            told = answer.tst_info
        except ValueError:
            raise TimeStampFailed("NO_TIME_STAMP") from None
        if told.message_imprint.message != sha256(data).digest() or told.nonce != asked.nonce:
            raise TimeStampFailed("OF_SOMETHING_ELSE")
        return content

    async def _request_stamp(self, question: bytes) -> bytes:
        try:
            reply = await self.outbound.send_post(
                self.url, headers=_HEADERS, content=question, most_bytes=MOST_BYTES
            )
        except OutboundRefused as refused:
            raise TimeStampFailed(refused.code) from None
        if reply.status != _OK or not reply.is_whole:
            raise TimeStampFailed("NO_TIME_STAMP")
        return reply.body
