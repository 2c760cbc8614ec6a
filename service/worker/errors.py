"""What whoever runs a worker can mend; the message says how and holds no secret."""


class WorkerError(Exception):
    """The worker cannot go on as it is set up."""
