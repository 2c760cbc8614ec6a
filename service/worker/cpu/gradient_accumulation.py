"""Gradients that are added to a sum."""

from service.worker.cpu.gradients import prepare_accumulation as prepare

__all__ = ["prepare"]
