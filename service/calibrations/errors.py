"""What can go wrong with calibrations."""

from service.kit.http.problems import Conflict, NotFound


class CalibrationNotFound(NotFound):
    """There is no such calibration."""

    code, title = "CALIBRATION_NOT_FOUND", "There is no calibration of this id"


class CalibrationWithdrawn(Conflict):
    """What was withdrawn stays so; the results of a later run may make a new set."""

    code, title = "CALIBRATION_WITHDRAWN", "The calibration is withdrawn already"


class NothingToWithdraw(Conflict):
    """The node has no calibration that somebody has not withdrawn already."""

    code, title = "NOTHING_TO_WITHDRAW", "The node has no calibration that is not withdrawn"
