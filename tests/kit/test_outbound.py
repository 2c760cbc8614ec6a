"""Requests to addresses that others name: where they go, and what they take from whoever is there."""

import asyncio
import ipaddress
import os
import threading
import time

import pytest

from service.kit.http.outbound import (
    EXCERPT_BYTES,
    OutboundClient,
    OutboundRefused,
    is_public,
    parse_networks,
)
from tests.webhooks.receiving import (
    HOSTILE_ADDRESSES,
    NAME,
    answer,
    contexts,
    dripping,
    huge,
    receiver,
    silent,
)

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]
LOOPBACK = parse_networks("127.0.0.0/8")

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "192.0.1.1", "198.17.255.255", "2606:4700::6810:84e5"]
REFUSED = [
    "0.0.0.0",  # noqa: S104  # nothing listens on it
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.9.10",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_hosts_may_be_called(text):
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", REFUSED)
def test_others_may_not(text):
    assert not is_public(ipaddress.ip_address(text))


def test_a_public_address_is_one_that_python_calls_global():
    """The own table refuses more than the library's, never less."""
    numbers = os.urandom(4 * 2000)
    for start in range(0, len(numbers), 4):
        address = ipaddress.ip_address(numbers[start : start + 4])
        assert not is_public(address) or (address.is_global and not address.is_multicast)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://example.com/",
        "https://",
        "https:///path",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://example.com/#fragment",
        "https://exa mple.com/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com:99999/",
        "https://[::1/",
        "//example.com",
        "example.com",
        "https://example.com/\x00",
        "https://example.com/" + "x" * 2000,
        "https://@example.com/",
        "https://:@example.com/",
        "https://example.com:0/",
        "https://example.com./",
        "https://127.0.0.1./",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://1.1.1.0x1/",
        "https://example.123/",
        "https://%31%32%37.0.0.1/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://127\u30020\u30020\u30021/",
        "https://m\u00fcnchen.example/",
        *HOSTILE_ADDRESSES,
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(OutboundRefused) as refused:
        OutboundClient().check_url(text)
    assert refused.value.code == "URL_INVALID"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("http://example.com/", "URL_REFUSED"),
        ("https://example.com:22/", "URL_REFUSED"),
        ("https://10.0.0.1/", "ADDRESS_REFUSED"),
        ("https://[::1]/", "ADDRESS_REFUSED"),
        ("https://[::ffff:169.254.169.254]/", "ADDRESS_REFUSED"),
    ],
)
def test_what_may_not_be_called_is_refused_before(text, code):
    with pytest.raises(OutboundRefused) as refused:
        OutboundClient().check_url(text)
    assert refused.value.code == code


def test_the_operator_opens_networks_and_nothing_else():
    inside = OutboundClient(parse_networks("10.0.0.0/8, fd00::/8"))
    inside.check_url("http://10.1.2.3:8080/hook")
    inside.check_url("http://[fd00::5]/")
    inside.check_url("http://internal.example/")  # its addresses are looked at when it is called
    for text in (
        "http://192.168.1.1/",
        "http://8.8.8.8/",
        "https://8.8.8.8:22/",
        "https://[::ffff:10.0.0.1]/",
    ):
        with pytest.raises(OutboundRefused):
            inside.check_url(text)


def post(outbound, url):
    headers = {"content-type": "application/json", "x-signature": "s"}
    return asyncio.run(outbound.post(url, headers=headers, content=b'{"a":1}'))


def refusal(outbound, url):
    with pytest.raises(OutboundRefused) as refused:
        post(outbound, url)
    return refused.value.code


def local(**options):
    return OutboundClient(LOOPBACK, **{"timeout_seconds": 0.5, **options})


@pytest.fixture(scope="module")
def there():
    with receiver() as made:
        yield made


class TestAnAnswer:
    def test_is_taken(self, there):
        there.script["/ok"] = answer(202, b"taken\x00\x1b[31m\xff", retry_after="7")
        got = post(local(), there.url("/ok"))
        assert got == (202, "taken  [31m\ufffd", 7.0)
        headers, body = there.at("/ok")[-1]
        assert body == b'{"a":1}'
        assert headers["host"] == f"127.0.0.1:{there.port}"
        assert headers["x-signature"] == "s"
        assert "cookie" not in headers
        assert headers["connection"] == "close"

    def test_is_not_followed_elsewhere(self, there):
        there.script["/moved"] = answer(307, location=there.url("/secret"))
        assert post(local(), there.url("/moved")).status == 307
        assert there.at("/secret") == []

    def test_ignores_proxies_of_the_environment(self, there, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", there.url("/proxy"))
        monkeypatch.setenv("ALL_PROXY", there.url("/proxy"))
        before = there.connections
        post(local(), there.url("/direct"))
        assert there.connections == before + 1
        assert there.received[-1][0] == "/direct"

    def test_is_cut(self, there):
        there.script["/huge"] = huge
        got = post(local(), there.url("/huge"))
        assert (got.status, len(got.excerpt)) == (200, EXCERPT_BYTES)

    @pytest.mark.parametrize("said", ["soon", "", "-5", "9" * 30, "Wed, 21 Oct 2015 07:28:00 GMT"])
    def test_may_say_anything_about_when_to_come_again(self, there, said):
        there.script["/later"] = answer(429, retry_after=said)
        waits = post(local(), there.url("/later")).retry_after_seconds
        assert waits is None or 0 <= waits < 1e10

    def test_with_a_date_is_waited_for(self, there):
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3600))
        there.script["/date"] = answer(503, retry_after=date)
        assert 3590 < post(local(), there.url("/date")).retry_after_seconds <= 3600

    def test_counts_by_its_status_though_its_body_never_ends(self, there):
        there.script["/drip"] = dripping(b"\r\nx", every=0.6)
        began = time.monotonic()
        assert post(local(timeout_seconds=1.0), there.url("/drip")).status == 200
        assert time.monotonic() - began < 10


class TestNoAnswer:
    @pytest.mark.parametrize(
        ("path", "said", "code"),
        [
            ("/silent", silent, "TIMEOUT"),
            ("/headers", dripping(b"x-a: b\r\n"), "TIMEOUT"),
            ("/nothing", b"", "NO_HTTP_ANSWER"),
            ("/half", b"HTTP/1.1 200", "NO_HTTP_ANSWER"),
            ("/other", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "NO_HTTP_ANSWER"),
            ("/long", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\n\r\n", "NO_HTTP_ANSWER"),
        ],
    )
    def test_says_why(self, there, path, said, code):
        there.script[path] = said
        began = time.monotonic()
        assert refusal(local(), there.url(path)) == code
        assert time.monotonic() - began < 10

    def test_where_nobody_listens(self):
        assert refusal(local(), "http://127.0.0.2:9/") == "NOT_CONNECTED"

    def test_where_the_name_has_no_address(self):
        def nowhere(*_):
            raise OSError

        assert refusal(local(resolve=nowhere), "http://nowhere.test/") == "NAME_NOT_RESOLVED"

    def test_where_the_resolver_hangs(self):
        ending = threading.Event()
        outbound = local(resolve=lambda *_: ending.wait(30) and [])
        began = time.monotonic()
        assert refusal(outbound, "http://slow.test/") == "TIMEOUT"
        assert time.monotonic() - began < 10
        ending.set()


class TestAName:
    def test_is_called_at_the_address_that_was_looked_at(self, there):
        """A resolver that changes its mind (DNS rebinding) is not asked again."""
        asked = []

        def rebinding(host, port):
            asked.append((host, port))
            return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

        url = there.url("/name", host="rebinding.test")
        assert post(local(resolve=rebinding), url).status == 204
        assert asked == [("rebinding.test", there.port)]
        assert there.at("/name")[-1][0]["host"] == f"rebinding.test:{there.port}"
        assert refusal(local(resolve=rebinding), url) == "ADDRESS_REFUSED"

    @pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
    def test_with_one_address_that_may_not_be_called_is_not_called(self, there, address):
        before = there.connections
        outbound = local(resolve=lambda *_: ["127.0.0.1", address])
        assert refusal(outbound, there.url(host="mixed.test")) == "ADDRESS_REFUSED"
        assert there.connections == before

    def test_of_a_public_host_is_not_called_in_clear(self):
        outbound = local(resolve=lambda *_: ["8.8.8.8"])
        assert refusal(outbound, "http://public.test/") == "URL_REFUSED"

    def test_is_called_at_its_next_address_where_the_first_takes_no_connection(self, there):
        outbound = local(resolve=lambda *_: ["127.0.0.2", "127.0.0.1"])
        assert post(outbound, there.url("/next", host="two.test")).status == 204


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    return contexts(tmp_path_factory.mktemp("tls"))


class TestTls:
    def test_is_of_the_name_and_not_of_the_address(self, tls):
        server, client = tls
        shown = []
        server.sni_callback = lambda _, name, __: shown.append(name)
        with receiver(server) as there:
            outbound = local(resolve=lambda *_: ["127.0.0.1"], tls=client, timeout_seconds=5.0)
            assert post(outbound, there.url("/tls", scheme="https", host=NAME)).status == 204
            assert shown == [NAME]
            # The same receiver under a name that its certificate does not have.
            assert refusal(outbound, there.url("/tls", scheme="https", host="other.test")) == "TLS_FAILED"
            assert refusal(outbound, there.url("/tls", scheme="https")) == "TLS_FAILED"
            assert len(there.at("/tls")) == 1

    def test_of_nobody_known_is_refused(self, tls):
        server, _ = tls
        with receiver(server) as there:
            outbound = local(resolve=lambda *_: ["127.0.0.1"], timeout_seconds=5.0)
            assert refusal(outbound, there.url(scheme="https", host=NAME)) == "TLS_FAILED"
            assert there.received == []
