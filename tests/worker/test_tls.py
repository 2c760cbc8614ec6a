"""Certificates on a real connection: a private authority is trusted where it is named, nobody else ever."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from service.worker.client import NoAnswer, ServiceClient
from tests.worker.fake import NODE_ID, FakeService
from tests.worker.loopback import serving
from tests.worker.test_client import beat

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


class Authority:
    """Signs certificates."""

    def __init__(self):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = (
            self._builder(named("authority"), self._key, NOW + DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
                    key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )  # fmt: skip

    def _builder(self, name, key, ends):
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(named("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 30 * DAY)
            .not_valid_after(ends)
        )

    def context(self, folder, *, address="127.0.0.1", ends=NOW + DAY):
        """What a server of ``address`` presents."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            self._builder(named("service"), key, ends)
            .add_extension(alternative, critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / "server.pem").write_bytes(private + pem(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        return context


@pytest.fixture
def authority(tmp_path):
    made = Authority()
    (tmp_path / "ca.pem").write_bytes(pem(made.certificate))
    return made


def test_a_private_authority_that_is_named(authority, credentials, tmp_path):
    service = FakeService()
    with serving(service, authority.context(tmp_path)) as address:
        client = ServiceClient(address, ca_file=tmp_path / "ca.pem", credentials=credentials)
        assert beat(client).state == "active"
        client.close()
    assert service.log[0][1] == f"/v1/nodes/{NODE_ID}:heartbeat"


@pytest.mark.parametrize(
    ("server", "ca_file"),
    [
        ({}, None),
        ({"address": "127.0.0.2"}, "ca.pem"),
        ({"ends": NOW - DAY}, "ca.pem"),
        ({}, "other.pem"),
    ],
    ids=["not named", "of another host", "expired", "another authority"],
)
def test_nothing_is_said_to_anybody_else(authority, credentials, tmp_path, server, ca_file):
    (tmp_path / "other.pem").write_bytes(pem(Authority().certificate))
    service = FakeService()
    with serving(service, authority.context(tmp_path, **server)) as address:
        client = ServiceClient(address, ca_file=ca_file and tmp_path / ca_file, credentials=credentials)
        with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
            beat(client)
        client.close()
    assert service.log == []
