"""Constants of forward passes beside those of operators: convolutions, and the launch of kernels."""

from typing import NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare


class PassCalibration(NamedTuple):
    """Constants of forward passes over pictures, sound and texts.

    ``convolution_share`` is the rate of a convolution over that of a multiplication of the same shape: its
    operands are gathered from rows of the picture. ``built_kernel_seconds`` is the time of a kernel in
    addition to its work where an engine or a graph launches it, ``launch_seconds`` the time in which an eager
    host program launches one.
    """

    convolution_share: AchievedShare
    built_kernel_seconds: AchievedShare
    launch_seconds: AchievedShare
