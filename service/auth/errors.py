"""What can go wrong with tenants and keys."""

from service.kit.http.problems import BadRequest, Conflict, Forbidden, NotFound, Unauthorized


class KeyNotFound(NotFound):
    """There is no such key, or it is revoked."""

    code, title = "API_KEY_NOT_FOUND", "There is no live key of this id"


class TenantNotFound(NotFound):
    """There is no such tenant."""

    code, title = "TENANT_NOT_FOUND", "There is no tenant of this id"


class TenantExists(Conflict):
    """The id is taken."""

    code, title = "TENANT_EXISTS", "The id of the tenant is taken"


class NotRotating(Conflict):
    """The key has one secret only."""

    code, title = "NOT_ROTATING", "The key has no next secret"


class ScopeNotHeld(Forbidden):
    """Nobody hands on what they do not hold."""

    code, title = "SCOPE_NOT_HELD", "The credentials do not hold what they would hand on"


class SignInRequired(Unauthorized):
    """The page is for people who have signed in. A session ends after an hour."""

    code, title = "SIGN_IN_REQUIRED", "Sign in to read this page, then open it again"


class SignInUnavailable(Unauthorized):
    """The operator has set no issuer by which people could sign in (IRONLAW_OIDC_CLIENT_ID)."""

    code, title = "SIGN_IN_UNAVAILABLE", "Nobody can sign in here: the service knows no issuer for it"


class SignInFailed(BadRequest):
    """The issuer did not say who somebody is, or not to the browser that asked."""

    code, title = "SIGN_IN_FAILED", "You could not be signed in"


class BadEvent(BadRequest):
    """The token of an event is not one of the issuer for this service, or does not say whom it is about."""

    code, title = "SECURITY_EVENT_REFUSED", "The event is refused"


class NoIssuer(NotFound):
    """The operator has set no issuer."""

    code, title = "NO_ISSUER", "The service takes no tokens of an issuer"


class FormRefused(Forbidden):
    """The form was not read in the session that sent it: it is of another session, or of another site."""

    code, title = "FORM_REFUSED", "The form belongs to another session: read the page anew and send it again"


class SecretMismatch(RuntimeError):
    """The service was started with another secret than its database was filled with."""

    def __init__(self) -> None:
        super().__init__(
            "the secret is not the one of this database: set IRONLAW_SECRET_KEY, or the file of "
            "IRONLAW_SECRET_KEY_FILE, to the same value for every process"
        )
