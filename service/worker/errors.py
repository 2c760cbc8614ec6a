"""Errors that the operator of a worker can correct; the message says how and contains no secret."""


class WorkerError(Exception):
    """The worker cannot continue as it is configured."""


def get_first_line(error: Exception) -> str:
    """Returns the first line of an error's text, or its type where it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]
