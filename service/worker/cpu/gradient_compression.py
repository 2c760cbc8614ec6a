"""Gradients that are made smaller before they are sent."""

from service.worker.cpu.gradients import prepare_compression as prepare

__all__ = ["prepare"]
