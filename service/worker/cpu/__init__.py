"""Benchmarks of a node without an accelerator: the same kinds of work, done by NumPy on its processor."""

from service.worker.benchmark import BenchmarkPreparer
from service.worker.cpu import (
    attention,
    cache,
    collective,
    decode,
    fft,
    gemm,
    gradients,
    optimizer,
    storage,
    stream,
    training,
)

PREPARE: dict[str, BenchmarkPreparer] = {
    "gemm": gemm.prepare,
    "attention": attention.prepare,
    "stream": stream.prepare,
    "strided_read": stream.prepare_strided,
    "cache_stream": cache.prepare,
    "fft": fft.prepare,
    "decode_loop": decode.prepare,
    "training_step": training.prepare,
    "collective": collective.prepare,
    "optimizer_step": optimizer.prepare,
    "gradient_accumulation": gradients.prepare_accumulation,
    "gradient_compression": gradients.prepare_compression,
    "storage": storage.prepare,
}
"""Preparers by kind of work. A kind that is missing cannot be measured on a processor."""
