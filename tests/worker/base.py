"""What is installed with the package alone, without any of its extras."""

import re
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _key(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requirements):
    """Names of distributions that requirements lead to, on this Python."""
    found, waiting = set(), [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        extras = requirement.extras or {""}
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        found.add(_key(requirement.name))
        for text in distribution(requirement.name).requires or []:
            inner = Requirement(text)
            wanted = [
                extra for extra in extras if not inner.marker or inner.marker.evaluate({"extra": extra})
            ]
            if wanted and _key(inner.name) not in found:
                inner.marker = None
                waiting.append(inner)
    return found


BASE = closure(PROJECT["dependencies"])


@cache
def server_modules():
    """Modules of the extra `server` that the package alone does not bring."""
    beyond = closure(PROJECT["optional-dependencies"]["server"]) - BASE
    return sorted(
        module
        for module, names in packages_distributions().items()
        if {_key(name) for name in names} & beyond and not {_key(name) for name in names} & BASE
    )


def link_base(packages, names=BASE, rooms=("service", "migrations")):
    """Make a folder of packages hold the package and what it needs, or other packages, and nothing else."""
    for name in names:
        found = distribution(name)
        tops = {path.parts[0] for path in found.files if path.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            (packages / top).symlink_to(found.locate_file(top))
    for room in rooms:
        (packages / room).symlink_to(ROOT / room)
