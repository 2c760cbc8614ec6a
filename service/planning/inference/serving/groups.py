"""Groups of a pipeline, each of which one stage works for.

A pipeline equals as many servers, each with a share of requests, rate and cache and the whole pass as its
iteration.
"""

from service.planning.inference.load import ReplicaLoad, ReplicaServer, ServedLoad


def count_active_groups(server: ReplicaServer, load: ReplicaLoad) -> float:
    """Returns the groups of a pipeline that have requests.

    With fewer requests than stages some stages wait.
    """
    groups = float(server.pipeline)
    return groups if load.concurrency is None else min(groups, max(1.0, load.concurrency))


def split_group(server: ReplicaServer, load: ReplicaLoad, groups: float) -> tuple[ReplicaServer, ReplicaLoad]:
    """Returns one of the groups of a pipeline, and its load."""
    stages = float(server.pipeline)

    def divide_figure(figure: float | None, parts: float) -> float | None:
        return None if figure is None else figure / parts

    most = server.most_requests
    return (
        server._replace(
            most_requests=None if most is None else max(1, round(most / stages)),
            cache_tokens=divide_figure(server.cache_tokens, stages),
            pipeline=1,
        ),
        load._replace(
            concurrency=None if load.concurrency is None else max(1.0, load.concurrency / groups),
            rate_per_second=divide_figure(load.rate_per_second, groups),
            burst_requests=divide_figure(load.burst_requests, groups),
        ),
    )


def combine_groups(one: ServedLoad, groups: float, stages: float) -> ServedLoad:
    """Returns the served load of all groups of a pipeline, each as ``one``, and its highest rate."""
    return one._replace(
        requests_per_second=one.requests_per_second * groups,
        output_tokens_per_second=one.output_tokens_per_second * groups,
        decoding=one.decoding * groups,
        waiting=one.waiting * groups,
        most_requests_per_second=one.most_requests_per_second * stages,
        knee_requests=None if one.knee_requests is None else one.knee_requests * stages,
    )
