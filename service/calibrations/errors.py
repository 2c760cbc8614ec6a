"""Problems of calibrations."""

from service.kit.http.problems import Conflict, NotFound


class CalibrationNotFound(NotFound):
    """No calibration has this id."""

    code, title = "CALIBRATION_NOT_FOUND", "There is no calibration of this id"


class CalibrationWithdrawn(Conflict):
    """A withdrawal is final; the results of a later run may make a new calibration."""

    code, title = "CALIBRATION_WITHDRAWN", "The calibration is already withdrawn"


class NothingToWithdraw(Conflict):
    """Every calibration of the node is withdrawn already."""

    code, title = "NOTHING_TO_WITHDRAW", "The node has no calibration left to withdraw"
