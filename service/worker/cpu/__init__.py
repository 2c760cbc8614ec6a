"""What a node without an accelerator measures: the same kinds of work, done by NumPy on its processor."""

from service.worker.benchmark import Prepare
from service.worker.cpu import attention, collective, fft, gemm, storage, stream

PREPARE: dict[str, Prepare] = {
    "gemm": gemm.prepare,
    "attention": attention.prepare,
    "stream": stream.prepare,
    "strided_read": stream.prepare_strided,
    "fft": fft.prepare,
    "collective": collective.prepare,
    "storage": storage.prepare,
}
"""How each kind is made ready; a kind that is not here cannot be measured on a processor."""
