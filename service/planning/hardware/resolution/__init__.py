"""Curves of a question's device: the reference set with measured constants in its place.

The sets that apply to the device, and their distance, are found in :mod:`service.planning.hardware.nearest`.
A rate that was measured on this accelerator is divided by this accelerator's own data sheet, so that the rate
comes back as it was measured; a rate of another accelerator of its generation by the data sheet that it was
measured against. Constants without measurements stay those of the reference set.
"""

from service.planning.hardware.resolution.constants import DeviceConstants
from service.planning.hardware.resolution.curves import resolve_curves

__all__ = [
    "DeviceConstants",
    "resolve_curves",
]
