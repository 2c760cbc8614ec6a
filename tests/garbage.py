"""Garbage of a test run: looking through what stays would take a fifth of the time of imports and of tests.

A plugin that pytest loads before any other of ours.
"""

import gc

import pytest

gc.disable()  # until everything is imported


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    collected = yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    return collected


def pytest_sessionfinish():
    """What has stayed until the end is not looked through six times more."""
    gc.freeze()
