"""RDMA adapters of this host as the kernel lists them, and the two between which messages go."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from service.worker.benchmark import Unsupported

SYSTEM = Path("/sys")
"""Description of devices by the kernel, documented under Documentation/ABI/stable/sysfs-class-infiniband."""
_ACTIVE = "4: ACTIVE"
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec")


class RdmaPort(NamedTuple):
    """An active port of an adapter."""

    adapter: str
    number: int
    layer: str
    """Link layer: InfiniBand or Ethernet."""
    rate: str
    """Rate of the port as the kernel writes it, such as 400 Gb/sec (4X NDR)."""
    place: tuple[str, ...]
    """Folders of the PCI device, from the root of the bus."""
    driver: str = ""
    """Driver of the kernel, such as mlx5_core or efa."""

    @property
    def bytes_per_second(self) -> float | None:
        """Rate of the port in one direction; None if the kernel writes no rate."""
        found = _RATE.match(self.rate)
        return float(found[1]) * 1e9 / 8.0 if found else None

    def describe(self) -> str:
        """Describes the port for a record."""
        return f"{self.adapter} port {self.number} ({self.layer}, {self.rate})"


def list_ports() -> list[RdmaPort]:
    """Lists the active ports of adapters with a PCI device. Emulated adapters have none and are left out."""
    return list(_iterate_ports(SYSTEM / "class" / "infiniband"))


def _iterate_ports(folder: Path) -> Iterator[RdmaPort]:
    for adapter in _list_folder(folder):
        place = (adapter / "device").resolve().parts
        if not any(part.startswith("pci") for part in place):
            continue
        for port in _list_folder(adapter / "ports"):
            if port.name.isdigit() and _read_text(port / "state") == _ACTIVE:
                layer, rate = _read_text(port / "link_layer"), _read_text(port / "rate")
                driver = (adapter / "device" / "driver").resolve().name
                yield RdmaPort(adapter.name, int(port.name), layer, rate, place, driver)


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _read_text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return "unknown"


def select_ports(
    ports: Sequence[RdmaPort], bus_id: str, path: Literal["between_adapters", "loopback"]
) -> tuple[RdmaPort, RdmaPort]:
    """Returns the port nearest to a PCI device, and the nearest one of another adapter or itself.

    Nearer is what has more bridges of the bus in common. The other adapter has the same link layer and rate.

    Raises:
        Unsupported: There is no active port, or no other adapter of that kind.
    """
    if not ports:
        raise Unsupported("no RDMA adapter has an active port")
    place = (SYSTEM / "bus" / "pci" / "devices" / bus_id).resolve().parts
    first = _find_nearest(ports, place)
    if path == "loopback":
        return first, first
    others = [
        port
        for port in ports
        if port.adapter != first.adapter and (port.layer, port.rate) == (first.layer, first.rate)
    ]
    if not others:
        raise Unsupported(f"no other RDMA adapter has an active port as {first.describe()}")
    return first, _find_nearest(others, place)


def _find_nearest(ports: Iterable[RdmaPort], place: Sequence[str]) -> RdmaPort:
    return max(ports, key=lambda port: _count_common(port.place, place))


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    common = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        common += 1
    return common
