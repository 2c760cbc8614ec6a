"""Problems of imported evidence."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class EvidenceNotFound(NotFound):
    """No import has this id."""

    code, title = "EVIDENCE_NOT_FOUND", "There is no imported evidence of this id"


class EvidenceRefused(Unprocessable):
    """The file cannot be read, lacks facts that only the caller knows, or contains nothing that counts."""

    code, title = "EVIDENCE_REFUSED", "The measurements cannot be imported"


class EvidenceCounted(Conflict):
    """The same file with the same facts is imported already and would count twice."""

    code, title = "EVIDENCE_COUNTED", "The same measurements are imported already"
