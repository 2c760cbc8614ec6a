"""What can go wrong with links of approvals."""

from service.kit.http.problems import Conflict, Forbidden, NotFound


class PublicUrlUnknown(Conflict):
    """The service does not know where browsers reach it: IRONLAW_PUBLIC_URL is not set."""

    code, title = "PUBLIC_URL_UNKNOWN", "The service does not know its own address"


class LinkForPersonsOnly(Forbidden):
    """Whoever has a key or signs in decides by that: by a link for them its maker could act in their name."""

    code, title = "APPROVAL_LINK_FOR_PERSONS_ONLY", "Links are for approvers without credentials"


class TooManyLinks(Conflict):
    """Revoke links that are not needed; an approval keeps all that were made."""

    code, title = "TOO_MANY_APPROVAL_LINKS", "The approval has as many links as it can have"


class LinkRevoked(Conflict):
    """Somebody who may make links has revoked it, or the key that made it has ended."""

    code, title = "APPROVAL_LINK_REVOKED", "The link has been revoked"


class LinkNotFound(NotFound):
    """There is no such link: it is not whole, or nobody made it, or it was removed after it ended."""

    code, title = "APPROVAL_LINK_NOT_FOUND", "There is no approval behind this link"


class LinkUsed(Conflict):
    """A link serves for one decision."""

    code, title = "APPROVAL_LINK_USED", "The link has been used for a decision"


class LinkExpired(Conflict):
    """The time of the step that the link was made for has passed."""

    code, title = "APPROVAL_LINK_EXPIRED", "The time of the link has passed"
