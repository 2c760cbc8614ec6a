"""Signatures of Standard Webhooks: the published vector, and the reference library in both directions."""

import base64
import secrets
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from service.webhooks import signing
from service.webhooks.signing import WebhookSignatureScheme
from tests.webhooks import ed25519

BODY = '{"type":"webhook.test","data":{"name":"Zürich, 1000 €"}}'


def test_the_vector_of_the_specification():
    """https://github.com/standard-webhooks/standard-webhooks, libraries/python/tests/test_webhooks.py."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signing.compute_signature(
        secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


class TestAsymmetric:
    KEYS = base64.b64decode(
        "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
    )
    MESSAGE = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    def test_the_vector_of_the_specification(self):
        """https://github.com/svix/svix-webhooks, test_asymmetric_key_signing; spec/standard-webhooks.md."""
        made = signing.compute_signature(self.KEYS[:32], *self.MESSAGE, WebhookSignatureScheme.V1A)
        assert made == (
            "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
        )

    def test_a_public_key_is_shown_as_libraries_take_it(self):
        assert (
            signing.derive_public_key(self.KEYS[:32]) == "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
        )

    def test_another_implementation_takes_what_is_signed_and_nothing_else(self):
        old, new = signing.generate_secret(), signing.generate_secret()
        body = BODY.encode()
        headers = signing.build_headers([new, old], "id", 7, body, WebhookSignatureScheme.V1A)
        for secret, text in zip((new, old), headers["webhook-signature"].split(" "), strict=True):
            version, _, encoded = text.partition(",")
            assert version == "v1a"
            key = base64.b64decode(signing.derive_public_key(secret).removeprefix("whpk_"))
            made = base64.b64decode(encoded)
            assert ed25519.holds(key, made, b"id.7." + body)
            for changed in (b"other.7." + body, b"id.8." + body, b"id.7." + body + b" "):
                assert not ed25519.holds(key, made, changed)


def test_a_secret_is_of_the_length_that_is_asked_for():
    shown = signing.format_secret(signing.generate_secret())
    assert shown.startswith("whsec_")
    assert 24 <= len(base64.b64decode(shown.removeprefix("whsec_"))) <= 64


def test_ours_are_those_of_the_reference_library():
    time = datetime.now(UTC).replace(microsecond=0)
    for _ in range(20):
        secret, message_id = secrets.token_bytes(32), secrets.token_hex(16)
        theirs = Webhook(signing.format_secret(secret)).sign(message_id, time, BODY)
        assert signing.compute_signature(secret, message_id, int(time.timestamp()), BODY.encode()) == theirs


class TestTheReferenceLibrary:
    def test_takes_what_is_signed_under_either_secret(self):
        old, new = signing.generate_secret(), signing.generate_secret()
        headers = signing.build_headers([new, old], "id", int(datetime.now(UTC).timestamp()), BODY.encode())
        for secret in (old, new):
            assert Webhook(signing.format_secret(secret)).verify(BODY, headers)["type"] == "webhook.test"

    @pytest.mark.parametrize("wrong", ["secret", "id", "body", "time"])
    def test_refuses_what_was_changed(self, wrong):
        secret = signing.generate_secret()
        time = datetime.now(UTC) - (timedelta(minutes=6) if wrong == "time" else timedelta())
        headers = signing.build_headers([secret], "id", int(time.timestamp()), BODY.encode())
        if wrong == "id":
            headers["webhook-id"] = "other"
        if wrong == "secret":
            secret = signing.generate_secret()
        with pytest.raises(WebhookVerificationError):
            Webhook(signing.format_secret(secret)).verify(BODY + " " * (wrong == "body"), headers)
