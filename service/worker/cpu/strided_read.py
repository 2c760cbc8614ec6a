"""Reads of words that lie a stride apart, over the arrays and threads of a stream."""

from service.worker.cpu.stream import prepare_strided as prepare

__all__ = ["prepare"]
