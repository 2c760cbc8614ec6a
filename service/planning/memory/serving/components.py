"""Components of the memory of a served model on one device."""

from typing import NamedTuple


class IterationBytes(NamedTuple):
    """Live intermediates of one iteration.

    The larger of ``least`` and a part that grows with the requests.
    """

    least: float
    beside: float = 0.0
    request: float = 0.0
    """Bytes of each request, in addition to ``beside``."""

    def compute_bytes(self, requests: int) -> float:
        """Returns the bytes with ``requests`` at a time."""
        return max(self.least, self.beside + requests * self.request)

    def scale(self, factor: float) -> "IterationBytes":
        """Returns all members times ``factor``."""
        return IterationBytes(self.least * factor, self.beside * factor, self.request * factor)


class ServingMemory(NamedTuple):
    """Bytes on the fullest device of one replica of a served model."""

    weights: float
    requests: int
    """Concurrent requests."""
    sequence_cache_bytes: float
    """KV cache of one whole request."""
    iteration: "IterationBytes"
    """Intermediates of one iteration with as many tokens as it may process."""
    request_logits_bytes: float
    """Bytes to sample one token of one request."""
    sequence_state_bytes: float = 0.0
    """Recurrent state of one request."""
    iteration_cache_bytes: float = 0.0
    """KV cache of the tokens of one iteration beside the windows, shared by all requests."""
    token_cache_bytes: float = 0.0
    """Bytes that the engine charges for a token when it reports its capacity."""
    sampler_requests: int = 0
    """Requests that memory to sample a token is reserved for; 0 for the served requests."""
    held_bytes: float = 0.0
    """Part of an iteration that is still held when tokens are sampled."""
    auxiliary_models: float = 0.0
    """Weights of further models that a request passes."""
    draft_weights: float = 0.0
    draft_sequence_cache_bytes: float = 0.0
    adapters: float = 0.0
    communication: float = 0.0
    runtime: float = 0.0
    cuda_graphs: float = 0.0
    context: float = 0.0
    outside_bytes: float = 0.0
    """Part of these that the engine does not charge to its share of the device."""
    loading_bytes: float = 0.0
    """Bytes that loading holds beside the weights before there is a cache, and frees again."""

    @property
    def iteration_bytes(self) -> float:
        """Intermediates of one iteration with the served requests."""
        return self.iteration.compute_bytes(self.requests)

    @property
    def request_bytes(self) -> float:
        """Caches and states of one more whole request."""
        return self.sequence_cache_bytes + self.sequence_state_bytes + self.draft_sequence_cache_bytes

    @property
    def kv_cache(self) -> float:
        """KV cache of all requests."""
        return self.requests * self.sequence_cache_bytes + self.iteration_cache_bytes

    @property
    def state(self) -> float:
        """Recurrent state of all requests."""
        return self.requests * self.sequence_state_bytes

    @property
    def draft_kv_cache(self) -> float:
        """KV cache of the draft model for all requests."""
        return self.requests * self.draft_sequence_cache_bytes

    @property
    def sampling_bytes(self) -> float:
        """Peak memory of sampling tokens."""
        return (self.sampler_requests or self.requests) * self.request_logits_bytes

    @property
    def sampler(self) -> float:
        """Memory to sample tokens, where the engine reserves it and it exceeds an iteration."""
        outgrows = self.sampler_requests and self.held_bytes + self.sampling_bytes > self.iteration_bytes
        return self.sampling_bytes if outgrows else 0.0

    @property
    def workspace(self) -> float:
        """Larger of the intermediates inside the layers and of the logits after them.

        Or, where that is more, the memory of loading beyond the room that caches take later.
        """
        if self.sampler_requests:
            return self.held_bytes if self.sampler else self.iteration_bytes
        running = max(self.iteration_bytes, self.sampling_bytes)
        return max(running, self.loading_bytes - self.requests * self.request_bytes)

    @property
    def beside_bytes(self) -> float:
        """Memory that does not depend on the requests and the batch."""
        loaded = self.weights + self.auxiliary_models + self.draft_weights + self.adapters
        return loaded + self.communication + self.runtime + self.cuda_graphs + self.context

    @property
    def fixed_bytes(self) -> float:
        """All memory but caches and states."""
        return self.beside_bytes + self.workspace + self.sampler

    @property
    def total_bytes(self) -> float:
        """All memory."""
        return self.fixed_bytes + self.iteration_cache_bytes + self.requests * self.request_bytes


class ServingRange(NamedTuple):
    """Memory with every buffer of the engine at its least, at its value and at its most."""

    least: ServingMemory
    value: ServingMemory
    most: ServingMemory
