"""Supplies of a plan: owned nodes, rented devices and offers of the catalog, and their clusters."""

from service.plans.supplies.space import build_space

__all__ = [
    "build_space",
]
