"""An issuer of tokens for tests: its keys, its tokens right and wrong, and its pages on loopback."""

import base64
import contextlib
import hashlib
import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote_plus, urlencode

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

NOW = 1_800_000_000
CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def private_key(algorithm, name="one", bits=2048):
    """A private key, the same one for a name."""
    return made_key(algorithm, name, bits)


@cache
def made_key(algorithm, _name, bits):
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm])
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, bits)


def implementation(algorithm):
    return get_default_algorithms()[algorithm]


def jwk(algorithm="ES256", kid="one", *, bits=2048, **members):
    """A public key as an issuer shows it."""
    key = private_key(algorithm, kid, bits).public_key()
    shown = implementation(algorithm).to_jwk(key, as_dict=True)
    shown.pop("key_ops", None)
    return {**shown, "kid": kid, "alg": algorithm, "use": "sig", **members}


def signed(header, payload, key, algorithm="ES256"):
    """A token of exactly these bytes."""
    signing_input = f"{encoded(header)}.{encoded(payload)}"
    return f"{signing_input}.{encoded(implementation(algorithm).sign(signing_input.encode(), key))}"


class Provider:
    """Issues tokens, and answers as a server does for its discovery document and keys."""

    def __init__(self, issuer="https://issuer.test/realms/ml", algorithm="ES256", *, now=NOW):
        self.issuer = issuer
        self.algorithm = algorithm
        self.now = now
        self.keys = [jwk(algorithm)]
        self.fetched = []
        self.failure = None

    @property
    def jwks_url(self):
        return f"{self.issuer}/keys"

    @property
    def documents(self):
        return {
            f"{self.issuer}/.well-known/openid-configuration": {
                "issuer": self.issuer,
                "jwks_uri": self.jwks_url,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
            },
            self.jwks_url: {"keys": self.keys},
        }

    def fetch(self, address):
        self.fetched.append(address)
        if self.failure:
            raise self.failure
        return json.dumps(self.documents[address]).encode()

    def claims(self, **claims):
        """Right claims with these changes; None leaves one out."""
        right = {
            "iss": self.issuer,
            "aud": "ironlaw",
            "sub": "ada",
            "exp": self.now + 600,
            "iat": self.now,
            "tenant": "physics",
            "scope": "openid estimates:read offers:write",
        }
        return {name: value for name, value in {**right, **claims}.items() if value is not None}

    def token(self, *, kid="one", algorithm=None, header=None, key=None, **claims):
        algorithm = algorithm or self.algorithm
        header = {"alg": algorithm, "kid": kid, "typ": "at+jwt", **(header or {})}
        header = {name: value for name, value in header.items() if value is not None}
        payload = json.dumps(self.claims(**claims)).encode()
        return signed(json.dumps(header).encode(), payload, key or private_key(algorithm, kid), algorithm)


class SigningIn(Provider):
    """Signs people in as well: whoever comes is `who`, without being asked."""

    def __init__(self, *, now, client_id="ironlaw-pages", secret="a secret of the client"):  # noqa: S107
        super().__init__("", "RS256", now=now)
        self.client_id = client_id
        self.secret = secret
        self.who = {"sub": "ada", "tenant": "default", "scope": "*:*"}
        self.codes = {}
        self.token_of_a_code = self.id_token

    def authorize(self, query):
        """Where the browser goes next."""
        assert query["response_type"] == "code"
        assert query["client_id"] == self.client_id
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        answer = {"code": code, "state": query["state"], "session_state": "x", "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    @property
    def documents(self):
        address = f"{self.issuer}/.well-known/openid-configuration"
        known = super().documents
        return {**known, address: {**known[address], "end_session_endpoint": f"{self.issuer}/end?realm=ml"}}

    def end_session(self, query):
        """Where the browser goes next (RP-Initiated Logout 1.0, section 2)."""
        assert query.pop("realm") == "ml"
        assert query.keys() == {"client_id", "post_logout_redirect_uri"}
        assert query["client_id"] == self.client_id
        return query["post_logout_redirect_uri"]

    def exchange(self, form, authorization):
        """Status and document for a code, which works once and for whom it was made."""
        query = self.codes.pop(form["code"], None)
        expected = base64.b64encode(f"{quote_plus(self.client_id)}:{quote_plus(self.secret)}".encode())
        challenge = encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        if self.secret:
            is_client = authorization == f"Basic {expected.decode()}"
        else:
            is_client = form.get("client_id") == self.client_id
        if (
            query is None
            or not is_client
            or query["code_challenge"] != challenge
            or query["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        return 200, {"token_type": "Bearer", "access_token": "x", "id_token": self.token_of_a_code(query)}

    def id_token(self, query, **claims):
        own = {"aud": self.client_id, "nonce": query["nonce"], **self.who}
        return self.token(header={"typ": "JWT"}, **{**own, **claims})


@contextlib.contextmanager
def on_loopback(provider, answer=None):
    """The provider's pages behind a server; ``answer`` of a handler replaces them."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if answer:
                # The client may have hung up, which is what some answers are for.
                with contextlib.suppress(ConnectionError):
                    answer(self)
                return
            path, _, query = self.path.partition("?")
            sending = {"/authorize": "authorize", "/end": "end_session"}
            if path in sending:
                self.send_response(302)
                self.send_header("Location", getattr(provider, sending[path])(dict(parse_qsl(query))))
                self.end_headers()
                return
            self._say(200, provider.documents[f"{provider.issuer}{path}"])

        def do_POST(self):
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._say(*provider.exchange(form, self.headers.get("Authorization")))

        def _say(self, status, said):
            document = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(document)))
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
