"""Prefill and decode on replicas of their own, and what the cache takes from one to the other."""

from dataclasses import dataclass
from functools import cached_property

from pydantic import MISSING

from service.estimates.calibrated import Timed, note_rates
from service.estimates.encoded import iterations_of
from service.estimates.serving import (
    Serving,
    Spreads,
    Subject,
    bound_of,
    held_by,
    load_of,
    server_of,
    speculation_of,
)
from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.collectives import Rail, rail_of
from service.planning.inference import Batch, IterationModel, IterationTime
from service.planning.inference.disaggregated import (
    Pool,
    Sides,
    Transfer,
    disaggregated,
    transfer_of,
)
from service.planning.operators import Bound, Phase
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity
from service.resolve.calibrated import calibrated
from service.resolve.catalog import Catalog
from service.resolve.disaggregated import POINTER, pool_layout
from service.resolve.hardware import given_link, resolve_cluster, usable_bytes, with_accelerator
from service.schemas.answer import quantity
from service.schemas.disaggregated import (
    DisaggregatedInput,
    DisaggregationAnswer,
    PoolAnswer,
    PoolInput,
)
from service.schemas.estimates import RunQuestion
from service.schemas.notes import Notes


@dataclass(frozen=True, kw_only=True)
class Apart(Serving):
    """A disaggregated system as one server, with its two sides."""

    sides: Sides
    transfer: Transfer
    prefill_model: IterationModel
    prefill_tokens: float
    """Most tokens of one iteration of a prefill replica."""
    devices: tuple[int, int]
    """Of all replicas of each side."""

    @property
    def prefilling(self) -> IterationModel:
        """Of the side that computes prompts."""
        return self.prefill_model

    @cached_property
    def prefill_iteration(self) -> IterationTime:
        """An iteration of a prefill replica with one prompt, or as much of it as it takes."""
        load, prompt = self.load, self.load.computed_tokens
        tokens = min(prompt, self.prefill_tokens)
        return self.prefill_model.time(Batch(0.0, 0.0, tokens, load.prefill_context, tokens / prompt))

    @property
    def computing(self) -> tuple[tuple[float, IterationTime], ...]:
        """Shares of the time of all devices, and the iteration that fills each: of both sides."""
        prefill, decode = (devices / sum(self.devices) for devices in self.devices)
        sides = self.sides
        return (
            (prefill * sides.prefill_utilization, self.prefill_iteration),
            (decode * sides.decode_utilization, self.served.iteration),
        )

    def as_measured(self, spreads: Spreads) -> Spreads:
        """As it is: what was measured of replicas that do both says little of two sides."""
        return spreads

    @property
    def requests_inside(self) -> float:
        """Requests that decode on one rank of a replica, on average."""
        return self.sides.decode_batch / self.ranks

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Where the time of a request goes: its wait, its prompt, the cache's way, its further tokens."""
        seconds = self.served.time_to_first_token_seconds.mean
        whole = self.served.request_seconds.mean
        rate = self.served.requests_per_second
        sent = self.sides.exposed_seconds
        waiting = min(self.served.waiting / rate, max(0.0, seconds - sent)) if rate else 0.0
        phases = [
            Phase("prefill", self.first_token(seconds - sent - waiting), bound_of(self.prefill_iteration)),
            Phase("transfer", self.first_token(sent), Bound.COMMUNICATION),
        ]
        if waiting:
            phases.insert(0, Phase("waiting", self.first_token(waiting), Bound.WAITING))
        if whole > seconds:
            phases.append(
                Phase("decode", self.output_token(whole - seconds), bound_of(self.served.iteration))
            )
        return tuple(phases)

    @property
    def limit(self) -> str:
        """What keeps the rate where it is: the load, or a side."""
        if not self.served.saturated and not self.sides.is_reached(self.served.requests_per_second):
            return "concurrency" if self.load.rate_per_second is None else "arrivals"
        return self.sides.limit

    def answer(self) -> DisaggregationAnswer:
        """Both sides, and what is between them."""
        sides, transfer = self.sides, self.transfer

        def side(devices: int, most: float, utilization: float, batch: float) -> PoolAnswer:
            rate: Quantity = self.spreads.rate.around(most, self.basis)
            return {
                "accelerator_count": devices,
                "most_requests_per_second": quantity(rate),
                "utilization": utilization,
                "mean_batch": batch,
            }

        prefill, decode = self.devices
        answer: DisaggregationAnswer = {
            "prefill": side(
                prefill, sides.most_prefilled_per_second, sides.prefill_utilization, sides.prefill_batch
            ),
            "decode": side(
                decode, sides.most_decoded_per_second, sides.decode_utilization, sides.decode_batch
            ),
            "transfer": {
                "bytes_per_request": round(transfer.bytes_per_request),
                "seconds": transfer.seconds,
                "exposed_seconds": sides.exposed_seconds,
            },
            "balanced_prefill_replicas_per_decode_replica": sides.balanced_ratio,
        }
        if transfer.seconds:
            answer["transfer"]["most_requests_per_second"] = sides.most_sent_per_second
        return answer


@dataclass(frozen=True, slots=True)
class _Side:
    pool: Pool
    layout: Parallelism
    cluster: Cluster
    model: IterationModel
    held: float | None


def serve_apart(
    subject: Subject, question: RunQuestion, given: DisaggregatedInput, catalog: Catalog, notes: Notes
) -> Apart | None:
    """What the whole system does; None where a device does not say enough."""
    prefill, decode = (
        _side(subject, question, getattr(given, name), name, catalog=catalog, notes=notes)
        for name in ("prefill", "decode")
    )
    if prefill is None or decode is None:
        return None
    workload, load = subject.workload, load_of(subject, 1)
    if not load.decodes:
        detail = "nothing is decoded: a request has one output token or none"
        raise PlanningError("NOT_MODELLED", POINTER, detail)
    transfer = transfer_of(
        subject.profile,
        load.inputs.mean,
        workload.cache_format,
        prefill=prefill.layout,
        decode=decode.layout,
        rail=_rail(question, given, decode.cluster, catalog, notes),
        by_layer=given.transfer == "by_layer",
        handoff_seconds=decode.model.rates.handoff_seconds,
    )
    found = disaggregated(prefill.pool, decode.pool, load, transfer)
    return Apart(
        served=found.served,
        model=decode.model,
        server=decode.pool.server,
        load=load,
        replicas=1.0,
        ranks=decode.layout.expert,
        held=decode.held,
        subject=subject,
        curves=catalog.curves,
        sides=found.sides,
        transfer=transfer,
        prefill_model=prefill.model,
        prefill_tokens=float(prefill.pool.server.batched_tokens),
        devices=(prefill.cluster.accelerator_count, decode.cluster.accelerator_count),
    )


def _side(
    subject: Subject, question: RunQuestion, given: PoolInput, name: str, *, catalog: Catalog, notes: Notes
) -> _Side | None:
    layout = pool_layout(given, subject.profile, notes, name)
    asked = question.cluster
    if given.accelerator is not MISSING:
        if given.accelerator != asked.accelerator:
            asked = with_accelerator(asked, given.accelerator)
            catalog = calibrated(catalog, asked)
        detail = "prices and power of the cluster are those of its own accelerator"
        notes.warn("ACCELERATORS_DIFFER", f"{POINTER}/{name}/accelerator", detail)
    asked = asked.model_copy(update={"accelerator_count": layout.devices * given.replicas})
    cluster = resolve_cluster(asked, catalog, Notes())
    workload = subject.workload
    requests, tokens = given.max_num_seqs, given.max_batched_tokens
    if requests is not MISSING:
        workload = workload._replace(most_requests=requests)
    if tokens is not MISSING:
        workload = workload._replace(batched_tokens=tokens)
    alone = subject._replace(workload=workload, layout=layout)
    model = iterations_of(
        subject.profile,
        workload,
        layout,
        subject.encoded,
        cluster=cluster,
        calibration=catalog.curves.calibration,
    )
    if model is None:
        return None
    note_rates(Timed(subject.profile, workload, layout, cluster), catalog, notes)
    limit = usable_bytes(cluster, workload)
    held = None if limit is None else held_by(alone, limit)
    server = server_of(alone, held)._replace(frontend_seconds=model.rates.frontend_seconds)
    proposals = subject.asked.proposals
    if proposals is not None and name == "decode":
        server = server._replace(speculation=speculation_of(alone, proposals, cluster, catalog.curves))
    return _Side(Pool(model, server, float(given.replicas)), layout, cluster, model, held)


def _rail(
    question: RunQuestion, given: DisaggregatedInput, cluster: Cluster, catalog: Catalog, notes: Notes
) -> Rail:
    """What carries the cache of one device: the link that is given, else the cluster's."""
    links = catalog.curves.links.value
    if given.transfer_link is not MISSING:
        link, source = given_link(given.transfer_link, catalog, f"{POINTER}/transfer_link")
        if source is not None:
            notes.cite(source, f"{POINTER}/transfer_link")
        return rail_of(link, links)
    whole = resolve_cluster(question.cluster, catalog, Notes())
    inside = whole.accelerator_count <= whole.domain
    return rail_of(cluster.intra_node_link if inside else cluster.inter_node_link, links)
