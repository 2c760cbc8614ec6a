"""A receiver of webhooks on loopback that behaves badly in every way that it is asked for, by path."""

import contextlib
import ipaddress
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NAME = "hooks.example.test"
HOSTILE_ADDRESSES = [
    f"https://{host}/"
    for host in (
        "xn--",
        "XN--",
        "xn--a",
        "xn--0.com",
        "xn--zzzzzzzzz99999999",
        "xn--a.xn--b",
        "hooks.xn--.example",
        "hooks.xn--a.example",
        "xn--" + "9" * 59 + ".example",
        "hooks..example",
        ".example",
        ".",
        "..",
        "a" * 64 + ".example",
        "a." * 126 + "example",
        "xn--e1afmkfd.",
        "hooks.example.:443",
        "hooks.example:00",
        "hooks.example:65536",
        "hooks.example:99999999999999999999",
        "hooks.example:-1",
        "hooks.example:abc",
        "hooks.example:4\u0664",
        "[]",
        "[::gg]",
        "[v1.a]",
        "[fe80::1%25lo]:443",
        "[::1%25]",
        "h\u00f6\u00f6ks.example",
        "hooks\uff0eexample",
        "\u200bhooks.example",
        "hooks%2eexample",
        "hooks.example%00",
    )
]
"""Hosts that no parser should choke on, and no resolver be asked for."""


def answer(status, body=b"", **headers):
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\n{fields}content-length: {len(body)}\r\n\r\n".encode() + body


class Receiver:
    """Keeps what it is sent; ``script`` has bytes to say, or a function of the connection, by path."""

    def __init__(self, tls=None):
        self.script = {}
        self.received = []
        self.connections = 0
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        self._closing = threading.Event()
        self._threads = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def url(self, path="/", *, scheme="http", host="127.0.0.1"):
        return f"{scheme}://{host}:{self.port}{path}"

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), contextlib.ExitStack() as ending:
            ending.enter_context(connection)
            connection.settimeout(10)
            if self._tls is not None:
                connection = ending.enter_context(self._tls.wrap_socket(connection, server_side=True))
            self._answer(connection)

    def _answer(self, connection):
        read = b""
        while b"\r\n\r\n" not in read:
            chunk = connection.recv(65536)
            if not chunk:
                return
            read += chunk
        head, _, body = read.partition(b"\r\n\r\n")
        line, *fields = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
        while len(body) < int(headers.get("content-length", 0)):
            chunk = connection.recv(65536)
            if not chunk:  # who sends was killed
                return
            body += chunk
        path = line.split()[1]
        self.received.append((path, headers, body))
        said = self.script.get(path, answer(204))
        if callable(said):
            said(connection, self._closing)
        else:
            connection.sendall(said)

    def at(self, path):
        return [(headers, body) for found, headers, body in self.received if found == path]

    def close(self):
        self._closing.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()


def silent(_, closing):
    """Takes everything and says nothing."""
    closing.wait(30)


def dripping(part, every=0.05):
    """Sends ``part`` again and again and never ends."""

    def drip(connection, closing):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not closing.wait(every):
            connection.sendall(part)

    return drip


def huge(connection, closing):
    """A body without an end, as fast as it is taken."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not closing.is_set():
        connection.sendall(b"x" * 65536)


def slow(seconds, said=None):
    """An answer that takes its time."""

    def wait(connection, closing):
        closing.wait(seconds)
        connection.sendall(said or answer(204))

    return wait


@contextlib.contextmanager
def receiver(tls=None):
    made = Receiver(tls)
    try:
        yield made
    finally:
        made.close()


def certificate(name=NAME):
    """Contexts of a server that shows a certificate of ``name``, and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = datetime.now(UTC)
    usages = x509.KeyUsage(True, *[False] * 4, True, True, False, False)  # noqa: FBT003
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([_alternative(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usages, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, made


def _alternative(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def contexts(directory, name=NAME):
    """TLS of a receiver that is called ``name``, and of a sender that believes it."""
    key, made = certificate(name)
    pem, private = directory / "certificate.pem", directory / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem, private)
    return server, ssl.create_default_context(cafile=str(pem))


def until_quiet(found, seconds=0.3):
    """What ``found`` counts once it has not changed for a while."""
    last, since = found(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.02)
        if found() != last:
            last, since = found(), time.monotonic()
    return last
