"""Settings, from environment variables with the prefix IRONLAW_."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import URL, make_url

from service.kit.addresses import is_loopback
from service.kit.http.outbound import Network, OutboundClient, parse_networks
from service.kit.security.keyring import Keyring, read_or_create_secret

if TYPE_CHECKING:
    from service.audit.exports import HeadExports
    from service.auth.login import OidcClient
    from service.auth.oidc import Issuer

SHORTEST_SECRET = 32
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# A compose file passes an unset variable as an empty text, which as a path would be this folder.
SecretFile = Annotated[Path | None, BeforeValidator(lambda given: given or None)]


class Settings(BaseSettings):
    """Settings of the operator."""

    model_config = SettingsConfigDict(env_prefix="IRONLAW_", frozen=True)

    host: str = "127.0.0.1"
    """Address to serve on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to serve on; 0 takes a free one."""
    mode: Literal["open", "tenant"] = "open"
    """`open` accepts every caller on a loopback address; `tenant` requires an API key or a token."""
    allowed_hosts: str = ""
    """Host names to answer for, separated by commas, `*` for any. Defaults to those of loopback."""
    data_dir: Path = Path("data")
    """Folder of the embedded database, its backups and the secret."""
    database_url: str = ""
    """PostgreSQL address such as postgresql+psycopg://user@host/name. Defaults to the embedded database."""
    database_password_file: SecretFile = None
    """File of the password for the role in the PostgreSQL address."""
    secret_key: SecretStr = SecretStr("")
    """Secret for key digests and audit seals, the same for every process. Defaults to that of the file."""
    secret_key_file: SecretFile = None
    """File of the secret. Defaults to `secret.key` in the data directory, made at first start."""
    guide_dir: Path = Path("build/guide")
    """Folder of the documentation site, which `make site` builds; served at /docs/guide."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 2**20
    """Largest request body."""
    memory_limit_bytes: Annotated[int, Field(ge=0, le=2**50)] | None = None
    """Memory of one process from which it refuses long work. Defaults to the cgroup's limit; 0 for none."""
    background_threads: Annotated[int, Field(ge=0, le=64)] = 2
    """Threads of this process that run background jobs; 0 only enqueues them."""
    answer_seconds: Annotated[float, Field(gt=0, le=3600)] = 5.0
    """Seconds that a caller may wait for a long answer: a search, a batch, a bill, an import."""
    requests_per_minute: Annotated[int, Field(ge=0, le=10**9)] = 600_000
    """Requests that one caller may make in a minute to one process; 0 for no limit."""
    rows_of_a_tenant: Annotated[int, Field(ge=0, le=10**9)] = 100_000
    """Most rows that a tenant may have of one resource of the catalog; 0 for no limit."""
    node_results_per_day: Annotated[int, Field(ge=0, le=10**9)] = 10_000
    """New results that one node may report in a day (UTC); 0 for no limit."""
    node_result_bytes_per_day: Annotated[int, Field(ge=0, le=2**50)] = 2**30
    """Bytes of new results that one node may report in a day; 0 for no limit."""
    node_inventories_per_day: Annotated[int, Field(ge=0, le=10**9)] = 100
    """New inventories that one node may send in a day (UTC); 0 for no limit."""
    node_inventory_bytes_per_day: Annotated[int, Field(ge=0, le=2**50)] = 16 * 2**20
    """Bytes of new inventories that one node may send in a day; 0 for no limit."""
    log_format: Literal["json", "text"] = "json"
    """Log format on standard error: `json` writes one object a line, `text` is for people."""
    webhook_networks: str = ""
    """Networks such as 10.0.0.0/8 that webhooks may call, also by http. Defaults to public hosts only."""
    audit_heads_file: Path | None = None
    """File to which audit heads are appended every hour, best on another machine's disk."""
    audit_time_stamp_url: str = ""
    """Address of a time stamp authority (RFC 3161) that stamps each line of that file. Defaults to none."""
    oidc_issuer: str = ""
    """Issuer of accepted tokens. Defaults to none: only API keys are accepted."""
    oidc_audience: str = ""
    """Audience that tokens must name."""
    oidc_algorithms: str = "RS256,ES256"
    """Accepted signature algorithms, separated by commas."""
    oidc_jwks_url: str = ""
    """Address of the issuer's keys. Found by discovery if it is empty."""
    oidc_tenant_claim: str = "tenant"
    """Claim that names the tenant."""
    oidc_tenant: str = ""
    """Tenant of tokens without that claim. If it is empty, they are refused."""
    oidc_scope_claim: str = "scope"
    """Claim that lists the scopes."""
    oidc_person_claim: str = "email"
    """Claim that identifies a person by the name that policies use; `email` counts only if it is verified."""
    oidc_client_id: str = ""
    """Client id of this service at the issuer, for people who sign in. Defaults to no sign-in."""
    oidc_client_secret_file: SecretFile = None
    """File of the client's secret. A public client has none and is protected by PKCE alone."""
    public_url: str = ""
    """Address of the service for browsers, such as https://plan.example.org; links and sign-in need it."""

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        if self.mode == "open" and not is_loopback(self.host):
            raise ValueError(f"IRONLAW_MODE=open serves only on loopback, not on {self.host}")
        if self.secret_key and len(self.secret_key.get_secret_value()) < SHORTEST_SECRET:
            raise ValueError(f"IRONLAW_SECRET_KEY must have at least {SHORTEST_SECRET} characters")
        if self.database_password_file and not self.database_url:
            raise ValueError("IRONLAW_DATABASE_PASSWORD_FILE requires IRONLAW_DATABASE_URL")
        if bool(self.oidc_issuer) != bool(self.oidc_audience):
            raise ValueError("IRONLAW_OIDC_ISSUER and IRONLAW_OIDC_AUDIENCE must be set together")
        # Raises if an algorithm is not safe.
        _ = self.issuer
        if self.public_url and not _is_public_url(self.public_url):
            raise ValueError("IRONLAW_PUBLIC_URL must be https://, or http:// on loopback, without a path")
        if self.oidc_client_id and not (self.oidc_issuer and self.public_url):
            raise ValueError("IRONLAW_OIDC_CLIENT_ID requires IRONLAW_OIDC_ISSUER and IRONLAW_PUBLIC_URL")
        if self.oidc_client_secret_file and not self.oidc_client_id:
            raise ValueError("IRONLAW_OIDC_CLIENT_SECRET_FILE requires IRONLAW_OIDC_CLIENT_ID")
        parse_networks(self.webhook_networks)
        if self.audit_time_stamp_url and not self.audit_heads_file:
            raise ValueError("IRONLAW_AUDIT_TIME_STAMP_URL requires IRONLAW_AUDIT_HEADS_FILE")
        return self

    @property
    def database(self) -> URL:
        """Address of the database; the embedded one by default."""
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
        """Networks whose hosts may be called in addition to public ones."""
        return parse_networks(self.webhook_networks)

    @property
    def audit_exports(self) -> "HeadExports":
        """Destinations of the audit heads."""
        from service.audit.exports import HeadExports  # noqa: PLC0415  # the tables come with it
        from service.audit.stamping import TimeStampAuthority  # noqa: PLC0415

        url = self.audit_time_stamp_url
        stamp = TimeStampAuthority(url, OutboundClient(self.networks)).stamp if url else None
        return HeadExports(file=self.audit_heads_file, stamp=stamp)

    @property
    def keyring(self) -> Keyring:
        """Keys derived from the service's secret."""
        given = self.secret_key.get_secret_value().encode()
        if not given and self.secret_key_file:
            given = self.secret_key_file.read_bytes().strip()
        secret = given or read_or_create_secret(self.data_dir / "secret.key")
        if len(secret) < SHORTEST_SECRET:
            raise OSError(f"the secret must have at least {SHORTEST_SECRET} characters")
        return Keyring(secret)

    @property
    def issuer(self) -> "Issuer | None":
        """Issuer of accepted tokens."""
        return self._build_issuer(self.oidc_audience) if self.oidc_issuer else None

    @property
    def login_client(self) -> "OidcClient | None":
        """This service as a client of the issuer by which people sign in."""
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
    """Returns the secret in a file, without the end of its line."""
    return file.read_text(encoding="utf-8").strip()


def _is_public_url(address: str) -> bool:
    """Returns true if an address is an origin to which cookies may be sent."""
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    return (
        is_safe and bool(parts.hostname) and address == f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    )
