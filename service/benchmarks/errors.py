"""What can go wrong with benchmark runs and results."""

from service.kit.http.problems import BadRequest, Conflict, NotFound, Unprocessable


class RunNotFound(NotFound):
    """There is no such benchmark run."""

    code, title = "BENCHMARK_RUN_NOT_FOUND", "There is no benchmark run of this id"


class SuiteNotFound(NotFound):
    """There is no such benchmark suite."""

    code, title = "BENCHMARK_SUITE_NOT_FOUND", "There is no benchmark suite of this id"


class ResultNotFound(NotFound):
    """There is no such benchmark result."""

    code, title = "BENCHMARK_RESULT_NOT_FOUND", "There is no benchmark result of this id"


class NothingToCompare(NotFound):
    """No measurement of this benchmark counts that meets the filters."""

    code, title = "NOTHING_TO_COMPARE", "There is no measurement to compare"


class DigestMismatch(BadRequest):
    """The body is not the one that the digest was made of: it was damaged on its way."""

    code, title = "DIGEST_MISMATCH", "The body does not have the digest that was sent with it"


class ResultDiffers(Unprocessable):
    """A result of this id is stored, with other content. What is stored is never changed."""

    code, title = "RESULT_DIFFERS", "Another result of this id is stored"


class NotAsAsked(Unprocessable):
    """The record does not fit its address, its node or its run."""

    code, title = "NOT_AS_ASKED", "The record is not the one that was asked for"


class RunNotGranted(Unprocessable):
    """A result is of a run that the service has granted its node; this one it never did."""

    code, title = "RUN_NOT_GRANTED", "The node was never granted this run"


class ResultsMissing(Conflict):
    """A lease ends only once every result that the node names is stored."""

    code, title = "RESULTS_MISSING", "Some of the results are not stored"
