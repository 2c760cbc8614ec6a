"""Wheels that travel to a machine without a network, and are imported there without an installer."""

import importlib
import os
import platform
import sys
import zipfile
from pathlib import Path

KIT = Path("build/gpu-kit")
"""Folder of `make gpu-kit`."""


def fits(wheel: Path) -> bool:
    """Returns true if this interpreter, on this machine, can import what a wheel holds."""
    *_, python, _, system = wheel.stem.split("-")
    minor = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return not {minor, "py3"}.isdisjoint(python.split(".")) and system.endswith(("any", platform.machine()))


def unpack(kit: Path) -> Path | None:
    """Unpacks the wheels that fit, once, and returns their folder; None if there are none."""
    wheels = [wheel for wheel in sorted(kit.glob("*.whl")) if fits(wheel)]
    if not wheels:
        return None
    site = kit / f"{sys.implementation.cache_tag}-{platform.machine()}"
    if not site.exists():
        unfinished = site.with_suffix(f".{os.getpid()}")
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as content:
                content.extractall(unfinished)
        unfinished.rename(site)
    return site


def use(kit: Path) -> None:
    """Imports from the kit before anything else, in this process and in those that it starts."""
    site = unpack(kit)
    if site is None:
        return
    path = str(site.resolve())
    sys.path.insert(0, path)
    os.environ["PYTHONPATH"] = os.pathsep.join([path, *filter(None, [os.environ.get("PYTHONPATH")])])
    importlib.invalidate_caches()
