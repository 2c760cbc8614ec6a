"""Requests to addresses that tenants name: to public hosts, and to networks that the operator allows.

A name is resolved once. Each of its addresses must be allowed, and the connection is opened to one of these
under the name of the host: a resolver that answers differently the next time (DNS rebinding) is not asked
again. Redirects are not followed, proxies of the environment are not used, and answers are truncated.
"""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from service.kit.clock import now

if TYPE_CHECKING:
    import httpx

    from service.kit.http.calling import CallReply, HostResolver

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PUBLIC_PORTS: Final = frozenset({443, 8443})
TIMEOUT_SECONDS: Final = 20.0
"""Seconds for the name, the connection, and the status and header fields of the answer."""
CONNECT_SECONDS: Final = 5.0
EXCERPT_BYTES: Final = 1024
EXCERPT_SECONDS: Final = 2.0
_MOST_ADDRESSES = 4
_URL_CHARACTERS = 2000
_LAST_PORT = 65535
_NAME_OCTETS = 253
_LABEL_OCTETS = 63
_PUNYCODE = "xn--"
_NUMBER = re.compile("[0-9]+|0[xX][0-9a-fA-F]*")

# Networks that are not routed globally or are not single hosts (the special-purpose registries of IANA), and
# one address at which Azure answers every guest.
_NOT_PUBLIC = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
]
_UNICAST_V6 = ipaddress.ip_network("2000::/3")
"""Unicast addresses of IPv6. All others are local, mapped, translated, multicast or not assigned."""


class OutboundRefused(Exception):
    """The address may not be called. Code and detail are shown to whoever named it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class OutboundFailed(OutboundRefused):
    """The call got no answer."""


class OutboundAnswer(NamedTuple):
    """The answer to a request."""

    status: int
    excerpt: str
    """Beginning of the body as printable text."""
    retry_after_seconds: float | None
    """Seconds that the receiver asks to wait before the next request (`Retry-After`)."""


def is_public(address: Address) -> bool:
    """Returns true if an address is that of one host of the public internet."""
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address not in _UNICAST_V6):
        return False
    return not any(address in network for network in _NOT_PUBLIC if network.version == address.version)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Parses networks that are separated by commas."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


class OutboundClient:
    """Sends requests to addresses that tenants name."""

    def __init__(
        self,
        networks: Iterable[Network] = (),
        *,
        resolve: "HostResolver | None" = None,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._networks = tuple(networks)
        self._resolve = resolve
        self._tls = tls
        self._timeout_seconds = timeout_seconds

    def check_url(self, text: str) -> "httpx.URL":
        """Returns the parsed address, or raises :class:`OutboundRefused`.

        Only checks that need no resolver are made here.
        """
        import httpx  # noqa: PLC0415  # a tenth of a second to import

        try:
            url = httpx.URL(text)
            is_odd = len(text) > _URL_CHARACTERS or not text.isascii() or _is_ambiguous(url)
        except (httpx.InvalidURL, UnicodeError):  # raised for bad Punycode once the host is read
            raise OutboundRefused("URL_INVALID", "the address cannot be read") from None
        if is_odd:
            raise OutboundRefused("URL_INVALID", "the address cannot be read")
        if "@" in re.split("[/?#]", text.partition("//")[2])[0] or url.fragment:
            raise OutboundRefused("URL_INVALID", "the address has a user or a fragment")
        if url.scheme not in ("https", "http"):
            raise OutboundRefused("URL_INVALID", "the address is neither https nor http")
        if not self._networks and not _is_public_endpoint(url):
            raise OutboundRefused("URL_REFUSED", "the address must use https at port 443 or 8443")
        literal = _parse_literal(url.host)
        if literal is not None:
            self._check_address(literal, url)
        return url

    async def post(self, text: str, *, headers: Mapping[str, str], content: bytes) -> OutboundAnswer:
        """Sends a POST and returns the answer; raises :class:`OutboundRefused` if it is refused or fails."""
        reply = await self.send_post(text, headers=headers, content=content, most_bytes=EXCERPT_BYTES)
        return OutboundAnswer(
            reply.status, _to_printable(reply.body), _parse_retry_after(reply.headers.get("retry-after", ""))
        )

    async def send_post(
        self, text: str, *, headers: Mapping[str, str], content: bytes, most_bytes: int
    ) -> "CallReply":
        """Sends a POST and returns at most ``most_bytes`` of the answer; raises as :meth:`post` does."""
        import httpx  # noqa: PLC0415

        from service.kit.http import calling  # noqa: PLC0415

        url = self.check_url(text)
        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)
        limits = calling.CallLimits(self._timeout_seconds, CONNECT_SECONDS, EXCERPT_SECONDS, most_bytes)
        called = calling.send_request(
            "POST",
            url,
            self._resolve_addresses(url),
            headers=headers,
            content=content,
            tls=self._tls,
            limits=limits,
        )
        try:
            return await called
        except calling.CallFailed as failed:
            raise OutboundFailed(failed.code, failed.detail) from None

    async def _resolve_addresses(self, url: "httpx.URL") -> list[str]:
        from service.kit.http import calling  # noqa: PLC0415

        literal = _parse_literal(url.host)
        if literal is not None:
            return [str(literal)]
        found = await calling.resolve_addresses(url, self._resolve or calling.resolve_host)
        addresses = [ipaddress.ip_address(text) for text in found]
        # One forbidden address makes the whole name forbidden.
        for address in addresses:
            self._check_address(address, url)
        return [str(address) for address in addresses[:_MOST_ADDRESSES]]

    def _check_address(self, address: Address, url: "httpx.URL") -> None:
        if any(address.version == network.version and address in network for network in self._networks):
            return
        if not is_public(address):
            raise OutboundRefused("ADDRESS_REFUSED", "the host has an address outside the public internet")
        if not _is_public_endpoint(url):
            raise OutboundRefused("URL_REFUSED", "the address must use https at port 443 or 8443")


def _is_public_endpoint(url: "httpx.URL") -> bool:
    return url.scheme == "https" and (url.port is None or url.port in PUBLIC_PORTS)


def _is_ambiguous(url: "httpx.URL") -> bool:
    """Returns true if parsers may differ about the host: 0x7f.1, 2130706433, a zone, a last dot."""
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        return True
    if not url.host or b"%" in url.raw_host or url.host.endswith("."):
        return True
    return _parse_literal(url.host) is None and not _is_dns_name(url)


def _is_dns_name(url: "httpx.URL") -> bool:
    """Returns true if the host is a DNS name (RFC 1123, section 2.1) that does not end in a number."""
    labels = url.raw_host.decode().split(".")
    if len(url.raw_host) > _NAME_OCTETS or not all(0 < len(each) <= _LABEL_OCTETS for each in labels):
        return False
    # httpx decodes a host only where it begins with Punycode, not its other labels.
    decoded = [url.copy_with(host=each).host for each in labels if each.lower().startswith(_PUNYCODE)]
    return all(decoded) and not _NUMBER.fullmatch(labels[-1])


def _parse_literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _to_printable(body: bytes) -> str:
    text = body.decode(errors="replace")
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def _parse_retry_after(text: str) -> float | None:
    """Returns the seconds to wait, given as a number or as a date; None if the field cannot be read."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now()).total_seconds())
