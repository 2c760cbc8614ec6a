"""Problems of tenants, keys and sign-in."""

from service.kit.http.problems import BadRequest, Conflict, Forbidden, NotFound, Unauthorized


class KeyNotFound(NotFound):
    """The key does not exist, or it is revoked."""

    code, title = "API_KEY_NOT_FOUND", "There is no live key of this id"


class TenantNotFound(NotFound):
    """The tenant does not exist."""

    code, title = "TENANT_NOT_FOUND", "There is no tenant of this id"


class TenantExists(Conflict):
    """A tenant of this id exists."""

    code, title = "TENANT_EXISTS", "The id of the tenant is taken"


class NotRotating(Conflict):
    """The key has only one secret."""

    code, title = "NOT_ROTATING", "The key is not in a rotation"


class ScopeNotHeld(Forbidden):
    """The caller grants a scope that it does not hold."""

    code, title = "SCOPE_NOT_HELD", "The credentials lack a scope that they would grant"


class SignInRequired(Unauthorized):
    """The page is for people who have signed in. A session ends after an hour."""

    code, title = "SIGN_IN_REQUIRED", "Sign in to read this page, then open it again"


class SignInUnavailable(Unauthorized):
    """The operator has configured no issuer for sign-in (IRONLAW_OIDC_CLIENT_ID)."""

    code, title = "SIGN_IN_UNAVAILABLE", "Sign-in is not configured on this service"


class SignInFailed(BadRequest):
    """The issuer did not identify the person, or not to the browser that asked."""

    code, title = "SIGN_IN_FAILED", "You could not be signed in"


class BadEvent(BadRequest):
    """The token of an event is not from the issuer for this service, or names no person."""

    code, title = "SECURITY_EVENT_REFUSED", "The event is refused"


class NoIssuer(NotFound):
    """The operator has configured no issuer."""

    code, title = "NO_ISSUER", "No issuer is configured on this service"


class FormRefused(Forbidden):
    """The form was not read in the session that sends it. It belongs to another session or another site."""

    code, title = "FORM_REFUSED", "The form belongs to another session: reload the page and send it again"


class SecretMismatch(RuntimeError):
    """The service was started with another secret than its database was created with."""

    def __init__(self) -> None:
        super().__init__(
            "the secret is not the one of this database: set IRONLAW_SECRET_KEY, or the file of "
            "IRONLAW_SECRET_KEY_FILE, to the same value for every process"
        )
