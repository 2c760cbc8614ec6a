"""What can go wrong with webhooks."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class WebhookNotFound(NotFound):
    """There is no such webhook."""

    code, title = "WEBHOOK_NOT_FOUND", "There is no webhook of this id"


class DeliveryNotFound(NotFound):
    """The webhook has no such delivery."""

    code, title = "DELIVERY_NOT_FOUND", "The webhook has no delivery of this id"


class WebhookDisabled(Conflict):
    """A webhook that is disabled is told nothing."""

    code, title = "WEBHOOK_DISABLED", "The webhook is disabled"


class TooManyWebhooks(Conflict):
    """The tenant has as many webhooks as it may have."""

    code, title = "TOO_MANY_WEBHOOKS", "The tenant has as many webhooks as it may have"


class AddressNotAllowed(Unprocessable):
    """The address is none that the service calls."""

    code, title = "ADDRESS_NOT_ALLOWED", "The service does not call this address"
