"""Problems of benchmark runs and results."""

from service.kit.http.problems import BadRequest, Conflict, NotFound, Unprocessable


class RunNotFound(NotFound):
    """No benchmark run has this id."""

    code, title = "BENCHMARK_RUN_NOT_FOUND", "There is no benchmark run of this id"


class SuiteNotFound(NotFound):
    """No benchmark suite has this id."""

    code, title = "BENCHMARK_SUITE_NOT_FOUND", "There is no benchmark suite of this id"


class ResultNotFound(NotFound):
    """No benchmark result has this id."""

    code, title = "BENCHMARK_RESULT_NOT_FOUND", "There is no benchmark result of this id"


class NothingToCompare(NotFound):
    """No counted measurement of this benchmark meets the filters."""

    code, title = "NOTHING_TO_COMPARE", "There is no measurement to compare"


class DigestMismatch(BadRequest):
    """The body does not match the digest that was sent with it: it was damaged on its way."""

    code, title = "DIGEST_MISMATCH", "The body does not match the digest that was sent with it"


class ResultDiffers(Unprocessable):
    """A result with this id is stored with other content. Stored results are never changed."""

    code, title = "RESULT_DIFFERS", "Another result with this id is stored"


class NotAsAsked(Unprocessable):
    """The record does not match its address, its node or its run."""

    code, title = "NOT_AS_ASKED", "The record does not match its address, node or run"


class RunNotGranted(Unprocessable):
    """A node may only report results of runs that the service has granted it."""

    code, title = "RUN_NOT_GRANTED", "The node was never granted this run"


class ResultsMissing(Conflict):
    """A lease can only be completed once every result that the node names is stored."""

    code, title = "RESULTS_MISSING", "Some of the results are not stored"
