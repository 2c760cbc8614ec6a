"""Errors of webhooks."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class WebhookNotFound(NotFound):
    """The tenant has no webhook of this id."""

    code, title = "WEBHOOK_NOT_FOUND", "There is no webhook of this id"


class DeliveryNotFound(NotFound):
    """The webhook has no delivery of this id."""

    code, title = "DELIVERY_NOT_FOUND", "The webhook has no delivery of this id"


class WebhookDisabled(Conflict):
    """The webhook is disabled, and nothing is sent to it."""

    code, title = "WEBHOOK_DISABLED", "The webhook is disabled"


class TooManyWebhooks(Conflict):
    """The tenant has as many webhooks as it may have."""

    code, title = "TOO_MANY_WEBHOOKS", "The tenant has as many webhooks as it may have"


class AddressNotAllowed(Unprocessable):
    """The service does not call this address."""

    code, title = "ADDRESS_NOT_ALLOWED", "The service does not call this address"
