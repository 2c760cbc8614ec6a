"""A question with its rates."""

from service.estimates.run import Run
from service.estimates.served import served_run
from service.estimates.trained import trained_run
from service.kit.http.wanted import check_wanted
from service.planning.workload import TrainingWorkload
from service.resolve import Resolved, resolve
from service.resolve.catalog import Catalog
from service.resolve.hardware import compute_peak, resolve_cluster
from service.schemas.estimates import RunQuestion
from service.schemas.notes import Notes
from service.schemas.references import AssumedEfficiency, ParameterCountModel


def plan_run(question: RunQuestion, catalog: Catalog) -> Run:
    """Resolve a question and compute its rates."""
    check_wanted()
    notes = Notes()
    is_assumed = isinstance(question.efficiency, AssumedEfficiency)
    communicates = not (is_assumed or isinstance(question.model, ParameterCountModel))
    cluster = resolve_cluster(question.cluster, catalog, notes, communicates=communicates)
    resolved = _in_samples(resolve(question, cluster, catalog, notes))
    run = Run(resolved, cluster, notes, compute_peak(cluster, resolved.workload)[1])
    if isinstance(resolved.workload, TrainingWorkload):
        return trained_run(run, question, catalog)
    return served_run(run, question, catalog)


def _in_samples(resolved: Resolved) -> Resolved:
    """A training question of a model that is asked by the sample: each of its tokens is one sample."""
    held, workload, total = resolved.held, resolved.workload, resolved.total_tokens
    if held.sample is None or not isinstance(workload, TrainingWorkload):
        return resolved
    assert isinstance(held.workload, TrainingWorkload)  # noqa: S101
    return resolved._replace(
        model=resolved.model._replace(profile=held.profile),
        workload=held.workload,
        total_tokens=None if total is None else total / workload.sequence_length,
    )
