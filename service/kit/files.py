"""Files that survive a loss of power."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Syncs the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
