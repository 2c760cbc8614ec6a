"""Settings, from environment variables with the prefix IRONLAW_."""

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import URL, make_url

from service.kit.http.outbound import Network, OutboundClient, parse_networks
from service.kit.security.keyring import Keyring, read_or_create_secret

if TYPE_CHECKING:
    from service.audit.exports import HeadExports
    from service.auth.login import OidcClient
    from service.auth.oidc import Issuer

SHORTEST_SECRET = 32
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# A compose file passes on as an empty text what is not set; as a path that would be this folder.
SecretFile = Annotated[Path | None, BeforeValidator(lambda given: given or None)]


class Settings(BaseSettings):
    """Everything that an operator can set."""

    model_config = SettingsConfigDict(env_prefix="IRONLAW_", use_attribute_docstrings=True, frozen=True)

    host: str = "127.0.0.1"
    """Address to serve on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to serve on; 0 takes a free one."""
    mode: Literal["open", "tenant"] = "open"
    """`open` takes everybody who reaches a loopback address; `tenant` wants an API key or a token."""
    allowed_hosts: str = ""
    """Host names to answer for, separated by commas, `*` for any; empty for those of loopback."""
    data_dir: Path = Path("data")
    """Folder of the embedded database, its backups and the secret."""
    database_url: str = ""
    """A PostgreSQL address such as postgresql+psycopg://user@host/name; empty for the embedded database."""
    database_password_file: SecretFile = None
    """File of the password for the role that the PostgreSQL address names."""
    secret_key: SecretStr = SecretStr("")
    """What key digests and audit seals are made with, the same for every process; empty for the file."""
    secret_key_file: SecretFile = None
    """File of the secret; `secret.key` in the data directory, made at the first start, if it is not set."""
    guide_dir: Path = Path("build/guide")
    """Folder of the site of the documentation, which `make site` builds; served at /docs/guide."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 2**20
    """Largest request body."""
    background_threads: Annotated[int, Field(ge=0, le=64)] = 2
    """Threads of this process that work on background jobs; with 0 it only asks for them."""
    answer_seconds: Annotated[float, Field(gt=0, le=3600)] = 5.0
    """How long a caller may wait for a long answer: a search, a batch, a bill under a tariff, an import."""
    requests_per_minute: Annotated[int, Field(ge=0, le=10**9)] = 600_000
    """Requests that one caller may make in a minute of one process; 0 for any number."""
    node_results_per_day: Annotated[int, Field(ge=0, le=10**9)] = 10_000
    """New results that one node may hand in a day (UTC); 0 for any number."""
    node_result_bytes_per_day: Annotated[int, Field(ge=0, le=2**50)] = 2**30
    """Bytes of those results; 0 for any number."""
    node_inventories_per_day: Annotated[int, Field(ge=0, le=10**9)] = 100
    """New inventories that one node may send a day (UTC); 0 for any number."""
    node_inventory_bytes_per_day: Annotated[int, Field(ge=0, le=2**50)] = 16 * 2**20
    """Bytes of those inventories; 0 for any number."""
    log_format: Literal["json", "text"] = "json"
    """`json` writes one object a line to standard error, `text` is for people."""
    webhook_networks: str = ""
    """Networks such as 10.0.0.0/8 whose hosts webhooks may name, by http too; empty for public hosts only."""
    audit_heads_file: Path | None = None
    """File to which the heads of the audit are appended every hour, best on another machine's disk."""
    audit_time_stamp_url: str = ""
    """Address of a time stamp authority (RFC 3161) that stamps each line of that file; empty for none."""
    oidc_issuer: str = ""
    """Issuer of the tokens that are taken; empty takes API keys only."""
    oidc_audience: str = ""
    """Audience that tokens must name."""
    oidc_algorithms: str = "RS256,ES256"
    """Signature algorithms that are taken, separated by commas."""
    oidc_jwks_url: str = ""
    """Address of the issuer's keys; found by discovery if it is empty."""
    oidc_tenant_claim: str = "tenant"
    """Claim that names the tenant."""
    oidc_tenant: str = ""
    """Tenant of tokens without that claim; empty refuses them."""
    oidc_scope_claim: str = "scope"
    """Claim that lists the scopes."""
    oidc_person_claim: str = "email"
    """Claim that says who a person is, by the name that policies use; `email` counts where it is verified."""
    oidc_client_id: str = ""
    """What the issuer knows this service as, so that people can sign in; empty if nobody does."""
    oidc_client_secret_file: SecretFile = None
    """File of the client's secret; a public client, which has none, is protected by PKCE alone."""
    public_url: str = ""
    """Where browsers reach the service, such as https://plan.example.org; links and signing in need it."""

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        if self.mode == "open" and not _is_loopback(self.host):
            raise ValueError(f"IRONLAW_MODE=open serves on loopback only, not on {self.host}")
        if self.secret_key and len(self.secret_key.get_secret_value()) < SHORTEST_SECRET:
            raise ValueError(f"IRONLAW_SECRET_KEY must have {SHORTEST_SECRET} characters at least")
        if self.database_password_file and not self.database_url:
            raise ValueError("IRONLAW_DATABASE_PASSWORD_FILE belongs to IRONLAW_DATABASE_URL")
        if bool(self.oidc_issuer) != bool(self.oidc_audience):
            raise ValueError("IRONLAW_OIDC_ISSUER and IRONLAW_OIDC_AUDIENCE belong together")
        # Refuses algorithms that are not safe.
        _ = self.issuer
        if self.public_url and not _is_public_url(self.public_url):
            raise ValueError("IRONLAW_PUBLIC_URL must be https://, or http:// on loopback, without a path")
        if self.oidc_client_id and not (self.oidc_issuer and self.public_url):
            raise ValueError("IRONLAW_OIDC_CLIENT_ID needs IRONLAW_OIDC_ISSUER and IRONLAW_PUBLIC_URL")
        if self.oidc_client_secret_file and not self.oidc_client_id:
            raise ValueError("IRONLAW_OIDC_CLIENT_SECRET_FILE belongs to IRONLAW_OIDC_CLIENT_ID")
        parse_networks(self.webhook_networks)
        if self.audit_time_stamp_url and not self.audit_heads_file:
            raise ValueError("IRONLAW_AUDIT_TIME_STAMP_URL belongs to IRONLAW_AUDIT_HEADS_FILE")
        return self

    @property
    def database(self) -> URL:
        """The address of the database, the embedded one by default."""
        if self.database_url:
            url, file = make_url(self.database_url), self.database_password_file
            return url.set(password=_read_secret(file)) if file else url
        return URL.create("sqlite", database=str(self.data_dir / "ironlaw.db"))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names that the service answers for."""
        given = tuple(name.strip() for name in self.allowed_hosts.split(",") if name.strip())
        return given or LOOPBACK_NAMES

    @property
    def networks(self) -> tuple[Network, ...]:
        """Networks whose hosts may be called beside public ones."""
        return parse_networks(self.webhook_networks)

    @property
    def audit_exports(self) -> "HeadExports":
        """Where the heads of the audit go."""
        from service.audit.exports import HeadExports  # noqa: PLC0415  # the tables come with it
        from service.audit.stamping import TimeStampAuthority  # noqa: PLC0415

        url = self.audit_time_stamp_url
        stamp = TimeStampAuthority(url, OutboundClient(self.networks)).stamp if url else None
        return HeadExports(file=self.audit_heads_file, stamp=stamp)

    @property
    def keyring(self) -> Keyring:
        """The keys of the service's secret."""
        given = self.secret_key.get_secret_value().encode()
        if not given and self.secret_key_file:
            given = self.secret_key_file.read_bytes().strip()
        secret = given or read_or_create_secret(self.data_dir / "secret.key")
        if len(secret) < SHORTEST_SECRET:
            raise OSError(f"the secret must have {SHORTEST_SECRET} characters at least")
        return Keyring(secret)

    @property
    def issuer(self) -> "Issuer | None":
        """The issuer of the tokens that are taken."""
        return self._build_issuer(self.oidc_audience) if self.oidc_issuer else None

    @property
    def login_client(self) -> "OidcClient | None":
        """What this service is to the issuer that people sign in by."""
        if not self.oidc_client_id:
            return None
        from service.auth.login import OidcClient  # noqa: PLC0415  # a tenth of a second to import

        file = self.oidc_client_secret_file
        secret = _read_secret(file) if file else ""
        return OidcClient(self._build_issuer(self.oidc_client_id), secret, self.public_url)

    def _build_issuer(self, audience: str) -> "Issuer":
        from service.auth.oidc import Issuer  # noqa: PLC0415  # a tenth of a second to import

        return Issuer(
            issuer=self.oidc_issuer,
            audience=audience,
            algorithms=tuple(name.strip() for name in self.oidc_algorithms.split(",")),
            jwks_url=self.oidc_jwks_url,
            tenant_claim=self.oidc_tenant_claim,
            tenant=self.oidc_tenant,
            scope_claim=self.oidc_scope_claim,
            person_claim=self.oidc_person_claim,
            event_audiences=frozenset({self.oidc_client_id} if self.oidc_client_id else ()),
        )


def _read_secret(file: Path) -> str:
    """What a file of one secret holds, without the line's end."""
    return file.read_text(encoding="utf-8").strip()


def _is_public_url(address: str) -> bool:
    """Whether an address is an origin to which cookies may go."""
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))
    return (
        is_safe and bool(parts.hostname) and address == f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
