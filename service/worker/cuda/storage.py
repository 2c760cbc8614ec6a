"""Files of a host with accelerators, written and read as on a host without them."""

from service.worker.cpu.storage import prepare

__all__ = ["prepare"]
