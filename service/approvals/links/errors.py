"""Problems of approval links."""

from service.kit.http.problems import Conflict, Forbidden, NotFound


class PublicUrlUnknown(Conflict):
    """The setting IRONLAW_PUBLIC_URL is missing, so the service does not know its public address."""

    code, title = "PUBLIC_URL_UNKNOWN", "The public address of the service is not set"


class LinkForPersonsOnly(Forbidden):
    """Approvers with a key or a sign-in decide by it: the maker of a link could act in their name."""

    code, title = "APPROVAL_LINK_FOR_PERSONS_ONLY", "Links are for approvers without credentials"


class TooManyLinks(Conflict):
    """The approval has reached its limit of links. Revoked links still count."""

    code, title = "TOO_MANY_APPROVAL_LINKS", "The approval has reached its limit of links"


class LinkRevoked(Conflict):
    """The link was revoked, or the key that made it has ended."""

    code, title = "APPROVAL_LINK_REVOKED", "The link has been revoked"


class LinkNotFound(NotFound):
    """The link is incomplete or unknown, or was removed after its end."""

    code, title = "APPROVAL_LINK_NOT_FOUND", "The link is not valid"


class LinkUsed(Conflict):
    """A link is valid for one decision."""

    code, title = "APPROVAL_LINK_USED", "The link has been used for a decision"


class LinkExpired(Conflict):
    """The step of the link has ended or expired."""

    code, title = "APPROVAL_LINK_EXPIRED", "The link has expired"
