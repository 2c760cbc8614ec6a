"""Bandwidth of the memory of a host with accelerators, by NumPy as on a host without them."""

from service.worker.cpu.stream import prepare

__all__ = ["prepare"]
