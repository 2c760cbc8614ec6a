"""NVML of one device whose readings a test sets: the names and errors of the real bindings, no driver."""

import os
from types import SimpleNamespace

import pynvml as real

UNSUPPORTED = object()


MOVED = (
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
)
POWER_SMOOTHING = range(251, 274)
"""Numbers of power smoothing, of which these counters have three: the first in drivers 575 to 580.65."""


class EachDevice(list):
    """An answer of its own for each device, in their order."""


class Slice:
    """The handle of a slice of a device (MIG), which answers less than the device."""

    def __init__(self, profile, **answers):
        number = 0xA0 + int(profile[0])
        self.uuid = f"MIG-00000000-0000-0000-0000-0000000000{number:x}"
        self.answers = {
            "nvmlDeviceGetUUID": self.uuid,
            "nvmlDeviceGetName": f"NVIDIA H200 MIG {profile}",
            "nvmlDeviceGetComputeRunningProcesses": [],
            **answers,
        }


class FakeNvml:
    """Answers by name; what is not set, or set to UNSUPPORTED, the device does not support."""

    NVMLError = real.NVMLError

    def __init__(self, **answers):
        self.answers = {
            "nvmlDeviceGetCount": 1,
            "nvmlSystemGetDriverVersion": "580.159.03",
            "nvmlDeviceGetPciInfo": SimpleNamespace(
                busId=b"00000000:17:00.0", pciDeviceId=0x233510DE, pciSubSystemId=0x18BE10DE
            ),
            "nvmlDeviceGetComputeRunningProcesses": [],
            **answers,
        }
        self.fields = {}
        self.slices = {}
        self.open = 0

    def nvmlInit(self):  # noqa: N802
        self.open += 1

    def nvmlShutdown(self):  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        assert self.open > 0
        if index >= self.answers["nvmlDeviceGetCount"]:
            raise real.NVMLError(real.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def nvmlDeviceGetMaxMigDeviceCount(self, _handle):  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, place):  # noqa: N802
        if place not in self.slices.get(handle, {}):
            raise real.NVMLError(real.NVML_ERROR_NOT_FOUND)
        return self.slices[handle][place]

    def nvmlDeviceGetFieldValues(self, _handle, wanted):  # noqa: N802
        return [self._field(number) for number in wanted]

    def _field(self, number):
        name = self._name(number)
        if name is None and number in POWER_SMOOTHING:
            value = SimpleNamespace(uiVal=1)
            return SimpleNamespace(
                nvmlReturn=real.NVML_SUCCESS, valueType=real.NVML_VALUE_TYPE_UNSIGNED_INT, value=value
            )
        if name not in self.fields:
            return SimpleNamespace(nvmlReturn=real.NVML_ERROR_NOT_SUPPORTED, valueType=0, value=None)
        value = self.fields[name]
        return SimpleNamespace(
            nvmlReturn=real.NVML_SUCCESS,
            valueType=real.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
            value=SimpleNamespace(ullVal=value() if callable(value) else value),
        )

    def _name(self, number):
        """What a number means to a driver of this version."""
        major, minor, *_ = map(int, self.answers["nvmlSystemGetDriverVersion"].split("."))
        first = 251 if (575, 0) <= (major, minor) < (580, 82) else 269
        if number in POWER_SMOOTHING:
            is_there = major >= 575 and first <= number < first + 3
            return MOVED[number - first] if is_there else None
        return {getattr(real, name): name for name in self.fields if name not in MOVED}.get(number)

    def __getattr__(self, name):
        found = getattr(real, name)
        if not name.startswith("nvml") or not callable(found):
            return found

        def answer(*arguments):
            assert self.open > 0, f"{name} before nvmlInit"
            is_slice = bool(arguments) and isinstance(arguments[0], Slice)
            value = (arguments[0] if is_slice else self).answers.get(name, UNSUPPORTED)
            if value is UNSUPPORTED:
                raise real.NVMLError(real.NVML_ERROR_NOT_SUPPORTED)
            if isinstance(value, EachDevice):
                value = value[arguments[0]]
            if isinstance(value, dict):
                value = value[arguments[1:]]
            return value() if callable(value) else value

        return answer


def process(pid=None, used=None):
    """A process on the device; this one by default."""
    return SimpleNamespace(pid=pid or os.getpid(), usedGpuMemory=used)
