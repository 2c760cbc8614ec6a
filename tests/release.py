"""Whether a tag may be released: it is the version of the package, and the changelog has its section."""

import re
import sys

from service import __version__
from tests.image import ROOT


def find_faults(tag, version, changelog):
    """What keeps a tag from being released."""
    if tag != f"v{version}":
        yield f"the tag is {tag} and the package is {version}"
    if not re.search(rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog):
        yield f"the changelog has no dated section of {version}"
    unreleased = re.search(r"(?ms)^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog)
    if unreleased and unreleased[1].strip():
        yield "the changelog has changes that are not released"


def main():
    """Refuse the tag that is given."""
    faults = list(find_faults(*sys.argv[1:], __version__, (ROOT / "CHANGELOG.md").read_text()))
    sys.exit("\n".join(f"release: {fault}" for fault in faults) if faults else 0)


if __name__ == "__main__":
    main()
