"""Errors that the operator of a worker can correct; the message says how and contains no secret."""


class WorkerError(Exception):
    """The worker cannot continue as it is configured."""
