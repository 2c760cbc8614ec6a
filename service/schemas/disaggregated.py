"""Disaggregated serving: prefill and decode on devices of their own."""

from typing import Literal, NotRequired

from pydantic import MISSING
from typing_extensions import TypedDict

from service.schemas.base import Degree, Integer, QuantityEstimate, Size, StrictModel
from service.schemas.references import AcceleratorReference, LinkReference, ParallelismInput


class DisaggregatedPoolInput(StrictModel):
    """Replicas of one kind: all of them compute prompts, or all of them generate."""

    parallelism: ParallelismInput = ParallelismInput()
    """Layout of one replica. `data`, the number of attention ranks that share its experts, defaults to
    `expert`."""
    replicas: Degree = 1
    """Equal replicas, with devices of their own."""
    accelerator: AcceleratorReference | MISSING = MISSING
    """Accelerator of the replicas. Defaults to the accelerator of the cluster."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration. Defaults to the value of the engine."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration. Defaults to the value of the engine."""


class DisaggregationInput(StrictModel):
    """Prefill and decode on replicas of their own. The KV cache of a prompt is transferred between them."""

    prefill: DisaggregatedPoolInput
    """Replicas that compute prompts."""
    decode: DisaggregatedPoolInput
    """Replicas that generate."""
    transfer_link: LinkReference | MISSING = MISSING
    """Link of each device that carries the KV cache. Defaults to the cluster's link between nodes, or to the
    link inside a node if all replicas are in one node."""
    transfer: Literal["by_layer", "whole"] = "by_layer"
    """`by_layer` if the cache of a layer is sent while later layers compute, `whole` if all of it is sent
    after the last."""


class DisaggregatedPoolEstimate(TypedDict):
    """Figures of the replicas of one kind."""

    accelerator_count: Integer
    """Devices of all its replicas."""
    most_requests_per_second: QuantityEstimate
    """Rate that all its replicas cannot exceed."""
    utilization: float
    """Share of the time in which a replica computes."""
    mean_batch: float
    """Mean prompts of a pass, or mean requests that decode at a time, on one replica."""


class KvCacheTransferEstimate(TypedDict):
    """Transfer of the KV cache of a prompt."""

    bytes_per_request: Integer
    """Bytes of a prompt's cache over all links. What several devices of a replica hold, such as a latent, is
    sent to each of them."""
    seconds: float
    """Time from the first byte to the last."""
    exposed_seconds: float
    """Time of the transfer, and of handing the request over, that a request waits for."""
    most_requests_per_second: NotRequired[float]
    """Rate that the links cannot exceed. Absent if nothing is sent."""


class DisaggregationEstimate(TypedDict):
    """Both kinds of replicas of disaggregated serving, at the rate that they reach together."""

    prefill: DisaggregatedPoolEstimate
    """Replicas that compute prompts."""
    decode: DisaggregatedPoolEstimate
    """Replicas that generate."""
    transfer: KvCacheTransferEstimate
    """Transfer of the KV cache from prefill to decode."""
    balanced_prefill_replicas_per_decode_replica: float
    """Ratio at which neither kind waits for the other: the highest rate of a decode replica over that of a
    prefill replica."""
