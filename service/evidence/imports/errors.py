"""What can go wrong with evidence."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class EvidenceNotFound(NotFound):
    """There is no such import."""

    code, title = "EVIDENCE_NOT_FOUND", "There is no imported evidence of this id"


class EvidenceRefused(Unprocessable):
    """The file cannot be read, lacks facts that only the caller knows, or holds nothing that counts."""

    code, title = "EVIDENCE_REFUSED", "The measurements cannot be imported"


class EvidenceCounted(Conflict):
    """The same file with the same facts counts already: it would count twice."""

    code, title = "EVIDENCE_COUNTED", "The same measurements count already"
