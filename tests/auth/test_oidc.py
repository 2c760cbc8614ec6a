"""Tokens: the right ones say who calls, every other is refused without an echo, keys come and go."""

import asyncio
import base64
import contextlib
import json
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from service.auth import oidc
from service.auth.oidc import (
    Issuer,
    IssuerUnavailable,
    TokenClaims,
    TokenRefused,
    TokenVerifier,
    fetch_document,
)
from service.kit.http import calling
from service.kit.http.calling import CallFailed
from tests.auth.issuing import NOW, Provider, encoded, jwk, on_loopback, private_key, signed

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class Clock:
    def __init__(self):
        self.now = float(NOW)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def provider():
    return Provider()


def configured(provider, **changes):
    members = {
        "issuer": provider.issuer,
        "audience": "ironlaw",
        "algorithms": ALGORITHMS,
        "jwks_url": provider.jwks_url,
        "tenant_claim": "tenant",
        "scope_claim": "scope",
    }
    return Issuer(**{**members, **changes})


@pytest.fixture
def verifier(provider, clock):
    return TokenVerifier(configured(provider), provider.fetch, clock)


def verify(verifier, token):
    return asyncio.run(verifier.verify(token))


def refusal(verifier, token):
    with pytest.raises(TokenRefused) as caught:
        verify(verifier, token)
    assert str(caught.value) == caught.value.detail
    assert caught.value.__cause__ is None
    return caught.value


def refreshed(verifier, token):
    """Verify, and let the fetch beside it finish."""

    async def both():
        claims = await verifier.verify(token)
        if not verifier._refresh.done():
            await asyncio.wait({verifier._refresh})
        return claims

    return asyncio.run(both())


# What a right token says


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_allowed_algorithm(algorithm, clock):
    provider = Provider(algorithm=algorithm)
    verifier = TokenVerifier(configured(provider, algorithms=(algorithm,)), provider.fetch, clock)
    expected = TokenClaims(
        "ada", "physics", frozenset({"estimates:read", "offers:write"}), NOW + 660, "", "ironlaw", "", NOW
    )
    assert verify(verifier, provider.token()) == expected


@pytest.mark.parametrize(
    ("claim", "scopes"),
    [
        (None, set()),
        ("", set()),
        ("openid profile Estimates:read estimates:read:all", set()),
        ("estimates:read  *:read\tplans:*", {"estimates:read", "*:read", "plans:*"}),
        (
            ["estimates:read", "benchmark-runs:write", 7, None, ["a:b"]],
            {"estimates:read", "benchmark-runs:write"},
        ),
        ("tenants:write tenants:* tenants:read tenants-of-mine:read", {"tenants-of-mine:read"}),
        ("estimates:read\n", {"estimates:read"}),
        (["estimates:read\n", "estimates:", ":read", "estimates"], set()),
    ],
)
def test_scopes_of_this_service(provider, verifier, claim, scopes):
    assert verify(verifier, provider.token(scope=claim)).scopes == scopes


def test_scopes_from_another_claim(provider, clock):
    verifier = TokenVerifier(configured(provider, scope_claim="roles"), provider.fetch, clock)
    assert verify(verifier, provider.token(roles=["plans:read"])).scopes == {"plans:read"}


@pytest.mark.parametrize(
    ("settings", "claim", "tenant"),
    [
        ({"tenant": "house"}, None, "house"),
        ({"tenant": "house"}, "physics", "physics"),
        ({"tenant": "house", "tenant_claim": ""}, "physics", "house"),
    ],
)
def test_the_tenant_of_the_claim_or_the_fixed_one(provider, clock, settings, claim, tenant):
    verifier = TokenVerifier(configured(provider, **settings), provider.fetch, clock)
    assert verify(verifier, provider.token(tenant=claim, **{"": "sneaked-in"})).tenant_id == tenant


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["other", "ironlaw"]},
        {"exp": NOW - 59},
        {"exp": NOW + 0.5},
        {"nbf": NOW + 60, "iat": NOW + 60},
        {"iat": None},
        {"sub": "auth0|Ada Lovelace"},
        {"sub": "Zoë-数"},
        {"sub": "a" * 255},
        {"tenant": "a" * 100},
    ],
)
def test_edges_that_are_right(provider, verifier, claims):
    assert verify(verifier, provider.token(**claims)).subject_id == claims.get("sub", "ada")


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "application/at+jwt", None])
def test_types_of_access_tokens(provider, verifier, typ):
    verify(verifier, provider.token(header={"typ": typ}))


def test_keys_in_a_token_are_not_looked_at(provider, verifier):
    """A token may carry them; they neither help nor are fetched."""
    stray = {"jku": "https://evil.test/keys", "x5u": "https://evil.test/x", "jwk": jwk(kid="evil")}
    assert verify(verifier, provider.token(header=stray)).subject_id == "ada"
    forged = provider.token(header=stray, key=private_key("ES256", "evil"))
    assert refusal(verifier, forged).code == "SIGNATURE"
    assert provider.fetched == [provider.jwks_url]


# What is refused


def replaced(token, position, part):
    parts = token.split(".")
    parts[position] = part
    return ".".join(parts)


def tampered(provider):
    payload = encoded(json.dumps(provider.claims(sub="root")).encode())
    return replaced(provider.token(), 1, payload)


def hmac_with_the_public_key(provider):
    pem = private_key("ES256").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = encoded(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    signing_input = f"{header}.{encoded(json.dumps(provider.claims()).encode())}".encode()
    return f"{signing_input.decode()}.{encoded(jwt.get_algorithm_by_name('HS256').sign(signing_input, pem))}"


def unsigned(provider, algorithm="none"):
    header = encoded(json.dumps({"alg": algorithm, "kid": "one"}).encode())
    return f"{header}.{encoded(json.dumps(provider.claims()).encode())}."


def of_bytes(provider, header=None, payload=None):
    header = b'{"alg": "ES256", "kid": "one"}' if header is None else header
    return signed(
        header, json.dumps(provider.claims()).encode() if payload is None else payload, private_key("ES256")
    )


def with_member(provider, text):
    """Right claims and then this text, which json.dumps would not write."""
    return of_bytes(provider, payload=json.dumps(provider.claims())[:-1].encode() + b"," + text + b"}")


def with_time(provider, text, name="exp"):
    claims = {**provider.claims(), name: None}
    payload = json.dumps(claims).replace(f'"{name}": null', f'"{name}": {text}')
    return of_bytes(provider, payload=payload.encode())


ATTACKS = {
    # algorithms and keys
    "alg none": ("MALFORMED", unsigned),
    "alg none with a signature": ("ALGORITHM", lambda p: p.token(header={"alg": "none"})),
    "alg None with a signature": ("ALGORITHM", lambda p: p.token(header={"alg": "nOnE"})),
    "HS256 with the public key": ("ALGORITHM", hmac_with_the_public_key),
    "alg of another kind of key": ("ALGORITHM", lambda p: p.token(header={"alg": "RS256"})),
    "alg of another curve": ("ALGORITHM", lambda p: p.token(header={"alg": "ES384"})),
    "alg that nobody allows": ("ALGORITHM", lambda p: p.token(header={"alg": "ES256K"})),
    "alg missing": ("ALGORITHM", lambda p: p.token(header={"alg": None})),
    "alg a list": ("ALGORITHM", lambda p: p.token(header={"alg": ["ES256"]})),
    "signed by another key": ("SIGNATURE", lambda p: p.token(key=private_key("ES256", "other"))),
    "kid of another key": ("SIGNATURE", lambda p: p.token(header={"kid": "two"})),
    "kid unknown": ("KEY_UNKNOWN", lambda p: p.token(header={"kid": "three"})),
    "kid missing": ("MALFORMED", lambda p: p.token(header={"kid": None})),
    "kid a number": ("MALFORMED", lambda p: p.token(header={"kid": 1})),
    "payload tampered": ("SIGNATURE", tampered),
    "signature too short": ("SIGNATURE", lambda p: replaced(p.token(), 2, encoded(bytes(63)))),
    "signature empty": ("MALFORMED", lambda p: replaced(p.token(), 2, "")),
    "signature of zeros": ("SIGNATURE", lambda p: replaced(p.token(), 2, encoded(bytes(64)))),
    # the header
    "crit": ("MALFORMED", lambda p: p.token(header={"crit": ["exp"]})),
    "crit b64": ("MALFORMED", lambda p: p.token(header={"crit": ["b64"], "b64": True})),
    "crit empty": ("MALFORMED", lambda p: p.token(header={"crit": []})),
    "b64 false": ("MALFORMED", lambda p: p.token(header={"b64": False})),
    "a logout token": ("MALFORMED", lambda p: p.token(header={"typ": "logout+jwt"})),
    "header a list": ("MALFORMED", lambda p: of_bytes(p, header=b'["alg", "ES256"]')),
    "header not JSON": ("MALFORMED", lambda p: of_bytes(p, header=b"{")),
    "header not UTF-8": ("MALFORMED", lambda p: of_bytes(p, header=b'{"alg": "ES256", "kid": "\xff"}')),
    "header in UTF-16": (
        "MALFORMED",
        lambda p: of_bytes(p, header='{"alg": "ES256", "kid": "one"}'.encode("utf-16")),
    ),
    "alg twice": ("MALFORMED", lambda p: of_bytes(p, header=b'{"alg":"none","alg":"ES256","kid":"one"}')),
    "header deep": ("MALFORMED", lambda p: of_bytes(p, header=b"[" * 4000)),
    # the form
    "nothing": ("MALFORMED", lambda _: ""),
    "huge": ("MALFORMED", lambda p: p.token(filler="a" * 8192)),
    "two parts": ("MALFORMED", lambda p: p.token().rpartition(".")[0]),
    "four parts": ("MALFORMED", lambda p: p.token() + ".AA"),
    "five parts": ("MALFORMED", lambda p: p.token() + ".AA.AA"),
    "a NUL": ("MALFORMED", lambda p: p.token() + "\0"),
    "a newline behind": ("MALFORMED", lambda p: p.token() + "\n"),
    "a newline between": ("MALFORMED", lambda p: p.token().replace(".", ".\n", 1)),
    "a space before": ("MALFORMED", lambda p: " " + p.token()),
    "padding": ("MALFORMED", lambda p: p.token() + "=="),
    "another alphabet": ("MALFORMED", lambda p: p.token() + "+/"),
    "not ASCII": ("MALFORMED", lambda p: p.token() + "é"),
    "a lone surrogate": ("MALFORMED", lambda p: p.token() + "\udc80"),
    # the payload
    "payload a list": ("MALFORMED", lambda p: of_bytes(p, payload=b"[]")),
    "payload not JSON": ("MALFORMED", lambda p: of_bytes(p, payload=b"sub=ada")),
    "payload deep": ("MALFORMED", lambda p: of_bytes(p, payload=b"[" * 4000)),
    "sub twice": ("MALFORMED", lambda p: with_member(p, b'"sub": "root"')),
    "a nested member twice": ("MALFORMED", lambda p: with_member(p, b'"act": {"sub": "a", "sub": "b"}')),
    "a number of 5,000 digits": ("MALFORMED", lambda p: with_member(p, b'"n": ' + b"9" * 5000)),
    "a number that is none": ("MALFORMED", lambda p: with_member(p, b'"n": NaN')),
    # claims
    **{
        f"{name} missing": ("CLAIM_MISSING", lambda p, name=name: p.token(**{name: None}))
        for name in ("iss", "aud", "exp", "sub", "tenant")
    },
    "exp null": ("CLAIM_MISSING", lambda p: with_time(p, "null")),
    "another issuer": ("ISSUER", lambda p: p.token(iss="https://evil.test")),
    "nearly our issuer": ("ISSUER", lambda p: p.token(iss=p.issuer + "/")),
    "iss a list": ("ISSUER", lambda p: p.token(iss=[p.issuer])),
    "another audience": ("AUDIENCE", lambda p: p.token(aud="other")),
    "audiences without ours": ("AUDIENCE", lambda p: p.token(aud=["other", "ironlaw "])),
    "no audience of a list": ("AUDIENCE", lambda p: p.token(aud=[])),
    "aud an object": ("AUDIENCE", lambda p: p.token(aud={"ironlaw": True})),
    "part of our audience": ("AUDIENCE", lambda p: p.token(aud="iron")),
    "expired beyond the skew": ("EXPIRED", lambda p: p.token(exp=NOW - 60)),
    "expired long ago": ("EXPIRED", lambda p: p.token(exp=0)),
    "nbf in the future": ("NOT_YET_VALID", lambda p: p.token(nbf=NOW + 61)),
    "iat in the future": ("NOT_YET_VALID", lambda p: p.token(iat=NOW + 61)),
    "nbf a text": ("MALFORMED", lambda p: p.token(nbf=str(NOW))),
    "nbf null": ("MALFORMED", lambda p: with_time(p, "null", "nbf")),
    "iat false": ("MALFORMED", lambda p: p.token(iat=False)),
    "exp true": ("MALFORMED", lambda p: p.token(exp=True)),
    "exp a text": ("MALFORMED", lambda p: p.token(exp=str(NOW + 600))),
    "exp a list": ("MALFORMED", lambda p: p.token(exp=[NOW + 600])),
    "exp NaN": ("MALFORMED", lambda p: with_time(p, "NaN")),
    "exp Infinity": ("MALFORMED", lambda p: with_time(p, "Infinity")),
    "exp 1e400": ("MALFORMED", lambda p: with_time(p, "1e400")),
    "exp of 400 digits": ("MALFORMED", lambda p: with_time(p, "9" * 400)),
    "exp negative": ("MALFORMED", lambda p: p.token(exp=-1)),
    "exp in milliseconds": ("MALFORMED", lambda p: p.token(exp=(NOW + 600) * 1000)),
    "sub a list": ("MALFORMED", lambda p: p.token(sub=["ada"])),
    "sub a number": ("MALFORMED", lambda p: p.token(sub=7)),
    "sub empty": ("MALFORMED", lambda p: p.token(sub="")),
    "sub too long": ("MALFORMED", lambda p: p.token(sub="a" * 256)),
    "sub with a NUL": ("MALFORMED", lambda p: p.token(sub="ada\0")),
    "sub with a newline": ("MALFORMED", lambda p: p.token(sub="ada\nroot")),
    "sub turned around": ("MALFORMED", lambda p: p.token(sub="ada\u202e")),
    "sub with a lone surrogate": ("MALFORMED", lambda p: p.token(sub="ada\ud800")),
    "sub with a space behind": ("MALFORMED", lambda p: p.token(sub="ada ")),
    "tenant shipped": ("TENANT", lambda p: p.token(tenant="shipped")),
    "tenant a path": ("TENANT", lambda p: p.token(tenant="../physics")),
    "tenant in capitals": ("TENANT", lambda p: p.token(tenant="Physics")),
    "tenant with a newline": ("TENANT", lambda p: p.token(tenant="physics\n")),
    "tenant too long": ("TENANT", lambda p: p.token(tenant="a" * 101)),
    "tenant a list": ("TENANT", lambda p: p.token(tenant=["physics"])),
    "tenant empty": ("CLAIM_MISSING", lambda p: p.token(tenant="")),
    "scope an object": ("MALFORMED", lambda p: p.token(scope={"estimates": "read"})),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_without_an_echo(provider, verifier, caplog, name):
    provider.keys = [jwk(), jwk(kid="two")]
    code, attack = ATTACKS[name]
    token = attack(provider)
    refused = refusal(verifier, token)
    assert refused.code == code
    told = {refused.detail, *(record.getMessage() for record in caplog.records)}
    pieces = {token, *token.split("."), "physics", "root", "evil", "https://", "logout"} - {""}
    assert not [piece for piece in pieces if any(piece in text for text in told)]
    assert not verifier._verified


def test_a_right_token_after_every_attack(provider, verifier):
    """The table refuses for its reasons and not because nothing is let in."""
    provider.keys = [jwk(), jwk(kid="two")]
    for _, attack in ATTACKS.values():
        refusal(verifier, attack(provider))
    assert verify(verifier, provider.token()).subject_id == "ada"
    assert len(provider.fetched) == 1


def test_every_changed_character_is_noticed(provider, verifier):
    token = provider.token()
    for position in range(0, len(token), 3):
        for character in "A_.":
            changed = f"{token[:position]}{character}{token[position + 1 :]}"
            if changed != token:
                assert refusal(verifier, changed).code in {
                    "SIGNATURE",
                    "MALFORMED",
                    "ALGORITHM",
                    "KEY_UNKNOWN",
                }


def test_only_the_configured_algorithms(provider, clock):
    verifier = TokenVerifier(configured(provider, algorithms=("RS256", "EdDSA")), provider.fetch, clock)
    assert refusal(verifier, provider.token()).code == "ALGORITHM"


def test_an_rsa_key_is_bound_to_its_algorithm(clock):
    provider = Provider(algorithm="RS256")
    verifier = TokenVerifier(configured(provider), provider.fetch, clock)
    assert refusal(verifier, provider.token(algorithm="PS256", key=private_key("RS256"))).code == "ALGORITHM"
    provider.keys = [jwk("RS256", alg="RS256"), jwk("RS256", kid="free")]
    del provider.keys[1]["alg"]
    verifier = TokenVerifier(configured(provider), provider.fetch, clock)
    free = private_key("RS256", "free")
    assert verify(verifier, provider.token(algorithm="PS256", key=free, header={"kid": "free"}))


# The key set as untrusted input


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(jwk("RS256", bits=1024), id="short"),
        pytest.param(jwk(use="enc"), id="for encryption"),
        pytest.param(jwk(alg="ECDH-ES"), id="for agreement"),
        pytest.param(jwk(crv="P-384"), id="another curve"),
        pytest.param(jwk(kty="OKP"), id="another kind"),
        pytest.param(jwk(kty=["EC"]), id="kind a list"),
        pytest.param(jwk(kid=None), id="without a name"),
        pytest.param(jwk(x="AAAA"), id="off the curve"),
        pytest.param(jwk(x=7), id="coordinate a number"),
        pytest.param(jwk("RS256", n=None), id="without a modulus"),
        pytest.param(jwk("RS256", e="Ag"), id="even exponent"),
        pytest.param({"kty": "oct", "kid": "one", "k": encoded(b"secret"), "alg": "HS256"}, id="symmetric"),
        pytest.param("key", id="a text"),
        pytest.param(None, id="null"),
    ],
)
def test_a_key_that_does_not_fit_is_left_out(provider, clock, key):
    provider.keys = [key, jwk(kid="two")]
    verifier = TokenVerifier(configured(provider), provider.fetch, clock)
    algorithm = key["alg"] if isinstance(key, dict) and key["alg"] in ALGORITHMS else "ES256"
    token = provider.token(algorithm=algorithm, key=private_key(algorithm))
    assert refusal(verifier, token).code == "KEY_UNKNOWN"
    assert verify(verifier, provider.token(kid="two")).subject_id == "ada"


def test_a_key_without_an_algorithm_serves_those_of_its_kind(provider, clock):
    """Also beside a key of another kind and the same name."""
    provider.keys = [jwk(), jwk("RS256", kid="one")]
    for key in provider.keys:
        del key["alg"]
    verifier = TokenVerifier(configured(provider), provider.fetch, clock)
    for algorithm, key in [("ES256", "ES256"), ("RS256", "RS256"), ("PS512", "RS256")]:
        token = provider.token(algorithm=algorithm, key=private_key(key))
        assert verify(verifier, token).subject_id == "ada"
    assert refusal(verifier, provider.token(header={"alg": "ES384"})).code == "ALGORITHM"


def test_a_private_key_in_the_set_is_taken_for_its_public_half(provider, clock):
    provider.keys = [jwk(d="AAAA")]
    verifier = TokenVerifier(configured(provider), provider.fetch, clock)
    assert verify(verifier, provider.token()).subject_id == "ada"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b"\xff",
        b"[" * 100_000,
        b'{"keys": [], "keys": []}',
        b'{"keys": NaN}',
    ],
)
def test_a_key_set_that_is_none(provider, clock, document):
    verifier = TokenVerifier(configured(provider), lambda _: document, clock)
    with pytest.raises(IssuerUnavailable):
        verify(verifier, provider.token())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
MEMBERS = st.sampled_from(["kty", "crv", "n", "e", "x", "y", "kid", "alg", "use", "d"])


@given(st.dictionaries(MEMBERS, JSON), st.sampled_from(["RS256", "ES256", "EdDSA"]))
def test_no_key_is_a_defect(changes, algorithm):
    keys = oidc._parse_keys({"keys": [{**jwk(algorithm), **changes}]}, ALGORITHMS)
    assert all(isinstance(key_id, str) and found for key_id, found in keys.items())


@given(st.dictionaries(st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat", "tenant", "scope"]), JSON))
def test_no_claim_is_a_defect(changes):
    provider = Provider()
    payload = json.dumps({**provider.claims(), **changes}).encode()
    verifier = TokenVerifier(configured(provider), provider.fetch, Clock())
    try:
        claims = verify(verifier, of_bytes(provider, payload=payload))
    except TokenRefused:
        return
    assert claims.subject_id
    assert claims.tenant_id != "shipped"
    assert NOW < claims.expires_at < float("inf")


@given(st.text(), st.text(alphabet="eyJ.-_"))
def test_no_text_is_a_token(text, nearly):
    provider = Provider()
    verifier = TokenVerifier(configured(provider), provider.fetch, Clock())
    refusal(verifier, text)
    refusal(verifier, nearly)


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://issuer.test/realms/ml/"},
        {"issuer": "https://evil.test"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": ["https://issuer.test/keys"]},
        {"jwks_uri": "http://issuer.test/keys"},
        {"jwks_uri": "http://127.0.0.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "https://user@issuer.test/keys"},
        {"jwks_uri": "https://issuer.test:port/keys"},
        {"jwks_uri": ""},
    ],
)
def test_a_discovery_document_that_is_not_followed(provider, clock, changes):
    fetched = []

    def fetch(address):
        fetched.append(address)
        (discovery, _) = provider.documents.values()
        return json.dumps({**discovery, **changes}).encode()

    verifier = TokenVerifier(configured(provider, jwks_url=""), fetch, clock)
    with pytest.raises(IssuerUnavailable):
        verify(verifier, provider.token())
    assert fetched == ["https://issuer.test/realms/ml/.well-known/openid-configuration"]


# Configuration


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithms": ()},
        *({"algorithms": ("RS256", name)} for name in ("none", "HS256", "HS512", "ES256K", "rs256", "")),
        *(
            {name: address}
            for name in ("issuer", "jwks_url")
            for address in (
                "http://issuer.test",
                "http://127.0.0.1.issuer.test",
                "http://10.0.0.1",
                "https://",
                "https://user:password@issuer.test",
                "https://issuer.test#x",
                "ftp://issuer.test",
                "issuer.test",
                "https://issuer.test:port",
            )
        ),
        {"issuer": ""},
        {"issuer": "https://issuer.test?a=b"},
        {"audience": ""},
        {"scope_claim": ""},
        {"tenant_claim": ""},
        {"tenant": "shipped"},
        {"tenant": "A"},
        {"skew_seconds": -1},
        {"skew_seconds": 301},
        {"skew_seconds": float("nan")},
    ],
)
def test_a_configuration_that_is_refused(provider, changes):
    with pytest.raises(ValueError, match=r"issuer|algorithms|tenant|skew"):
        configured(provider, **changes)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
def test_plain_http_on_loopback(provider, host):
    assert configured(provider, issuer=f"http://{host}", jwks_url=f"http://{host}/keys")


# Keys come and go


def test_concurrent_first_tokens_fetch_once(provider, clock):
    """And the event loop runs on while the issuer takes its time."""
    asked, answer = threading.Event(), threading.Event()

    def fetch(address):
        asked.set()
        assert answer.wait(5)
        return provider.fetch(address)

    verifier = TokenVerifier(configured(provider), fetch, clock)

    async def run():
        calls = [asyncio.create_task(verifier.verify(provider.token(sub=f"s{n}"))) for n in range(50)]
        assert await asyncio.to_thread(asked.wait, 5)
        calls[0].cancel()
        await asyncio.sleep(0)
        answer.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    cancelled, *claims = asyncio.run(run())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert [claim.subject_id for claim in claims] == [f"s{n}" for n in range(1, 50)]
    assert len(provider.fetched) == 1


def test_a_slow_fetch_is_not_joined_by_another(provider, clock):
    asked, answer = threading.Event(), threading.Event()

    def fetch(address):
        asked.set()
        assert answer.wait(5)
        return provider.fetch(address)

    verifier = TokenVerifier(configured(provider), fetch, clock)

    async def run():
        first = asyncio.create_task(verifier.verify(provider.token()))
        assert await asyncio.to_thread(asked.wait, 5)
        clock.now += 11
        second = asyncio.create_task(verifier.verify(provider.token()))
        await asyncio.sleep(0)
        answer.set()
        await asyncio.gather(first, second)

    asyncio.run(run())
    assert len(provider.fetched) == 1


def test_a_rotated_key_works_within_one_request(provider, verifier, clock):
    verify(verifier, provider.token())
    provider.keys.append(jwk(kid="two"))
    clock.now += 10
    assert verify(verifier, provider.token(kid="two")).subject_id == "ada"
    assert verify(verifier, provider.token()).subject_id == "ada"
    assert len(provider.fetched) == 2


def test_a_flood_of_unknown_keys_fetches_every_ten_seconds(provider, verifier, clock):
    verify(verifier, provider.token())

    async def flood():
        calls = [verifier.verify(provider.token(header={"kid": f"k{n}"})) for n in range(40)]
        return await asyncio.gather(*calls, return_exceptions=True)

    for rounds in range(1, 4):
        clock.now += 9.9
        assert {error.code for error in asyncio.run(flood())} == {"KEY_UNKNOWN"}
        assert len(provider.fetched) == rounds
        clock.now += 0.2
        assert {error.code for error in asyncio.run(flood())} == {"KEY_UNKNOWN"}
        assert len(provider.fetched) == rounds + 1


@pytest.mark.parametrize("idle", [300, 601, 3600])
def test_a_removed_key_stops_working_within_the_cache_time(provider, verifier, clock, idle):
    """Whether its token was seen before or not, and however long nobody asked."""
    seen, other = provider.token(exp=NOW + 86_400), provider.token(kid="two", exp=NOW + 86_400)
    provider.keys.append(jwk(kid="two"))
    verify(verifier, seen)
    verify(verifier, other)
    provider.keys.pop(0)
    clock.now += idle
    refreshed(verifier, other)
    assert refusal(verifier, seen).code == "KEY_UNKNOWN"
    assert refusal(verifier, provider.token(sub="new")).code == "KEY_UNKNOWN"
    assert [entry.key_id for entry in verifier._verified.values()] == ["two"]


def test_after_an_idle_time_the_first_token_already_meets_new_keys(provider, verifier, clock):
    token = provider.token(exp=NOW + 86_400)
    verify(verifier, token)
    provider.keys = [jwk(kid="two")]
    clock.now += 600
    assert refusal(verifier, token).code == "KEY_UNKNOWN"


def test_a_key_that_changes_under_its_name_forgets_its_tokens(provider, verifier, clock):
    token = provider.token(exp=NOW + 86_400)
    verify(verifier, token)
    provider.keys = [{**jwk(kid="two"), "kid": "one"}]
    clock.now += 600
    assert refusal(verifier, token).code == "SIGNATURE"
    assert verify(verifier, provider.token(key=private_key("ES256", "two"))).subject_id == "ada"


def test_keys_are_refreshed_beside_the_request(provider, verifier, clock):
    """A token is answered from kept keys while a slow issuer is asked."""
    token = provider.token(exp=NOW + 86_400)
    verify(verifier, token)
    clock.now += 300
    answer = threading.Event()
    fetch = provider.fetch
    verifier._fetch = lambda address: answer.wait(5) and fetch(address)

    async def run():
        claims = await verifier.verify(token)
        assert not verifier._refresh.done()
        answer.set()
        await verifier._refresh
        return claims

    assert asyncio.run(run()).subject_id == "ada"
    assert len(provider.fetched) == 2
    verify(verifier, token)
    assert len(provider.fetched) == 2


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError("no"), OSError("no"), ValueError("no"), TimeoutError()]
)
def test_kept_keys_work_for_a_day_without_the_issuer(provider, verifier, clock, failure):
    token = provider.token(exp=NOW + 10 * 86_400)
    verify(verifier, token)
    provider.failure = failure
    for age in (301, 601, 3600, 86_399):
        clock.now = NOW + age
        assert refreshed(verifier, token).subject_id == "ada"
        assert refreshed(verifier, provider.token(sub="new", exp=NOW + 86_400)).subject_id == "new"
    assert len(provider.fetched) == 5
    clock.now = NOW + 86_400
    for _ in range(2):
        with pytest.raises(IssuerUnavailable):
            verify(verifier, token)
    provider.failure = None
    clock.now += 10
    assert verify(verifier, token).subject_id == "ada"


def test_a_failed_issuer_is_not_waited_for_again(provider, verifier, clock):
    """Until it answers: from then on, old keys are replaced before an answer."""
    token = provider.token(exp=NOW + 86_400)
    verify(verifier, token)
    provider.failure = OSError("no")
    clock.now += 600
    refreshed(verifier, token)
    clock.now += 10
    answer = threading.Event()
    fetch = provider.fetch
    verifier._fetch = lambda address: answer.wait(5) and fetch(address)

    async def run():
        await verifier.verify(token)
        assert not verifier._refresh.done()
        provider.failure = None
        answer.set()
        await verifier._refresh

    asyncio.run(run())
    provider.keys = [jwk(kid="two")]
    clock.now += 600
    assert refusal(verifier, token).code == "KEY_UNKNOWN"


def test_without_keys_the_issuer_is_asked_every_ten_seconds(provider, verifier, clock):
    provider.failure = OSError("no")
    for _ in range(3):
        with pytest.raises(IssuerUnavailable):
            verify(verifier, provider.token())
    assert len(provider.fetched) == 1
    clock.now += 10
    provider.failure = None
    assert verify(verifier, provider.token()).subject_id == "ada"


def test_an_issuer_that_never_answers_is_given_up(provider, clock, monkeypatch):
    monkeypatch.setattr(oidc, "_REFRESH_TIMEOUT", 0.01)
    answer = threading.Event()
    verifier = TokenVerifier(configured(provider), lambda _: answer.wait(60) and b"", clock)

    async def run():
        start = time.monotonic()
        with pytest.raises(IssuerUnavailable):
            await verifier.verify(provider.token())
        answer.set()
        assert time.monotonic() - start < 20

    asyncio.run(run())


def test_so_many_wait_for_keys_and_no_shared_thread_does(provider, clock, monkeypatch):
    monkeypatch.setattr(oidc, "_MOST_WAITING", 3)
    asked, answer = threading.Event(), threading.Event()

    def fetch(address):
        asked.set()
        assert answer.wait(60)
        return provider.fetch(address)

    verifier = TokenVerifier(configured(provider), fetch, clock)

    async def run():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        calls = [asyncio.create_task(verifier.verify(provider.token(sub=f"s{n}"))) for n in range(5)]
        await calling.run_in_thread(asked.wait)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 30) == "free"
        answer.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    found = asyncio.run(run())
    assert [isinstance(each, IssuerUnavailable) for each in found] == [False] * 3 + [True] * 2


def test_a_clock_set_back_refreshes_the_keys(provider, clock):
    clock.now = NOW + 20 * 365 * 86_400
    provider.now = clock.now
    verifier = TokenVerifier(configured(provider), provider.fetch, clock)
    verify(verifier, provider.token())
    clock.now = provider.now = NOW
    provider.keys = [jwk(kid="two")]
    assert refusal(verifier, provider.token(iat=NOW)).code == "KEY_UNKNOWN"
    assert verify(verifier, provider.token(kid="two")).subject_id == "ada"


# Tokens seen before


def test_a_token_seen_before_is_not_verified_again(provider, verifier, clock, monkeypatch):
    token = provider.token()
    first = verify(verifier, token)
    monkeypatch.setattr(verifier, "_jws", None)
    assert verify(verifier, token) is first
    clock.now = NOW + 299.9
    assert verify(verifier, token) is first


def test_a_token_seen_before_expires(provider, verifier, clock):
    token = provider.token(exp=NOW + 100)
    verify(verifier, token)
    clock.now = NOW + 159.9
    verify(verifier, token)
    clock.now = NOW + 160
    assert refusal(verifier, token).code == "EXPIRED"


def test_only_so_many_tokens_are_remembered(provider, verifier, monkeypatch):
    monkeypatch.setattr(oidc, "_REMEMBERED_TOKENS", 3)
    tokens = [provider.token(sub=f"s{n}") for n in range(5)]
    for token in tokens:
        verify(verifier, token)
    assert isinstance(verifier._verified, OrderedDict)
    assert [entry.claims.subject_id for entry in verifier._verified.values()] == ["s2", "s3", "s4"]
    assert verify(verifier, tokens[0]).subject_id == "s0"


# A real issuer on loopback


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_discovery_over_http(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with on_loopback(Provider(now=int(time.time()))) as provider:
        verifier = TokenVerifier(configured(provider, jwks_url=""))
        assert verify(verifier, provider.token()).subject_id == "ada"
        assert refusal(verifier, provider.token(exp=provider.now - 61)).code == "EXPIRED"


def redirect(handler):
    handler.send_response(302)
    handler.send_header("Location", "/keys")
    handler.end_headers()


def too_large(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b" " * (oidc._DOCUMENT_BYTES + 1))


def headers_that_drip(handler):
    """Each field comes in time, and no end of them."""
    handler.send_response(200)
    handler.flush_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"X-Field: 1\r\n")
            time.sleep(0.05)


def not_found(handler):
    handler.send_error(404)


def too_slow(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(12):
        handler.wfile.write(b" ")
        time.sleep(0.02)


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("answer", [redirect, too_large, not_found, too_slow, headers_that_drip])
def test_an_answer_that_is_not_taken(monkeypatch, answer):
    if answer in (too_slow, headers_that_drip):
        monkeypatch.setattr(oidc, "_FETCH_TIMEOUT", 0.15)
    with on_loopback(Provider(), answer) as provider, pytest.raises((ValueError, CallFailed)):
        fetch_document(provider.jwks_url)


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_compression_is_neither_asked_for_nor_undone():
    asked = []

    def answer(handler):
        asked.append(handler.headers["accept-encoding"])
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.end_headers()
        handler.wfile.write(base64.b64decode("H4sIAAAAAAAC/6uuBQBDv6ajAgAAAA=="))

    with on_loopback(Provider(), answer) as provider:
        assert fetch_document(provider.jwks_url).startswith(b"\x1f\x8b")
    assert asked == ["identity"]
