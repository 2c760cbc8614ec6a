"""Requests to addresses that tenants name: to public hosts, and to networks that the operator allows.

A name is resolved once. Each of its addresses must be one that may be called, and the connection goes to one
of these, under the name that was asked for: a resolver that says something else the next time (DNS rebinding)
is not asked again. Redirects are not followed, proxies of the environment are not used, answers are cut.
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
"""For the name, the connection, and the status and header fields of the answer."""
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

# What is neither routed globally nor one host (the registries of special addresses of IANA), and one address
# at which Azure answers every guest.
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
"""All else is local, mapped, translated, multicast or not assigned."""


class OutboundRefused(Exception):
    """The address is none that may be called; code and detail are shown to whoever named it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class OutboundFailed(OutboundRefused):
    """No answer came."""


class OutboundAnswer(NamedTuple):
    """What came back."""

    status: int
    excerpt: str
    """The beginning of the body."""
    retry_after_seconds: float | None
    """How long the receiver asks to be left alone."""


def is_public(address: Address) -> bool:
    """Whether an address is that of one host of the public internet."""
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address not in _UNICAST_V6):
        return False
    return not any(address in network for network in _NOT_PUBLIC if network.version == address.version)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Networks written one after the other, separated by commas."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())


class OutboundClient:
    """Sends requests to addresses that others name."""

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
        """The address, unless one sees without asking a resolver that it may not be called."""
        import httpx  # noqa: PLC0415  # a tenth of a second to import

        try:
            url = httpx.URL(text)
            is_odd = len(text) > _URL_CHARACTERS or not text.isascii() or _is_ambiguous(url)
        except (httpx.InvalidURL, UnicodeError):  # of a host that is no Punycode only once it is looked at
            raise OutboundRefused("URL_INVALID", "the address cannot be read") from None
        if is_odd:
            raise OutboundRefused("URL_INVALID", "the address cannot be read")
        if "@" in re.split("[/?#]", text.partition("//")[2])[0] or url.fragment:
            raise OutboundRefused("URL_INVALID", "the address has a user or a fragment")
        if url.scheme not in ("https", "http"):
            raise OutboundRefused("URL_INVALID", "the address is neither https nor http")
        if not self._networks and not _is_public_endpoint(url):
            raise OutboundRefused("URL_REFUSED", "only https is called, at port 443 or 8443")
        literal = _parse_literal(url.host)
        if literal is not None:
            self._check_address(literal, url)
        return url

    async def post(self, text: str, *, headers: Mapping[str, str], content: bytes) -> OutboundAnswer:
        """The answer to a POST; :class:`OutboundRefused` where it may not or cannot be had."""
        reply = await self.send_post(text, headers=headers, content=content, most_bytes=EXCERPT_BYTES)
        return OutboundAnswer(
            reply.status, _to_printable(reply.body), _parse_retry_after(reply.headers.get("retry-after", ""))
        )

    async def send_post(
        self, text: str, *, headers: Mapping[str, str], content: bytes, most_bytes: int
    ) -> "CallReply":
        """What comes back of a POST, so much of it; :class:`OutboundRefused` as for :meth:`post`."""
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
        # One that may not be called speaks against the name, and not only against itself.
        for address in addresses:
            self._check_address(address, url)
        return [str(address) for address in addresses[:_MOST_ADDRESSES]]

    def _check_address(self, address: Address, url: "httpx.URL") -> None:
        if any(address.version == network.version and address in network for network in self._networks):
            return
        if not is_public(address):
            raise OutboundRefused("ADDRESS_REFUSED", "the host is not one of the public internet")
        if not _is_public_endpoint(url):
            raise OutboundRefused("URL_REFUSED", "only https is called, at port 443 or 8443")


def _is_public_endpoint(url: "httpx.URL") -> bool:
    return url.scheme == "https" and (url.port is None or url.port in PUBLIC_PORTS)


def _is_ambiguous(url: "httpx.URL") -> bool:
    """Whether parsers and resolvers may differ about the host (0x7f.1, 2130706433, a zone, a last dot)."""
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        return True
    if not url.host or b"%" in url.raw_host or url.host.endswith("."):
        return True
    return _parse_literal(url.host) is None and not _is_dns_name(url)


def _is_dns_name(url: "httpx.URL") -> bool:
    """Whether a host is a name of the DNS (RFC 1123, section 2.1) and no number."""
    labels = url.raw_host.decode().split(".")
    if len(url.raw_host) > _NAME_OCTETS or not all(0 < len(each) <= _LABEL_OCTETS for each in labels):
        return False
    # The host of an address is decoded where it begins with Punycode, its other labels are not.
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
    """Seconds that the receiver asks to wait, which it writes as such or as a date."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now()).total_seconds())
