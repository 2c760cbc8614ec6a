"""Accelerators by the names of systems and of the instance types of clouds."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from service.formats.instances import InstanceType, list_instance_types
from service.formats.names import normalize_part_name
from service.formats.offers.names import NamedAccelerator, build_accelerators, load_hosts, resolve_accelerator
from service.resolve.catalog import KnownAccelerator, KnownLinks, KnownOffer, KnownSystem
from service.resolve.names import NamedRows

InstancesByName = dict[str, dict[str, KnownAccelerator]]
"""Accelerators with the system of an instance, by id, by its normal name; none for a share of one."""


def list_instances(
    accelerators: Mapping[str, KnownAccelerator], offers: NamedRows[KnownOffer]
) -> InstancesByName:
    """Returns the accelerators that systems, offers and instance types of clouds name, in this order."""
    found: InstancesByName = {}
    for known in accelerators.values():
        for system in known.systems:
            held = found.setdefault(normalize_part_name(system.name), {})
            held[known.accelerator.id] = known.name_system(system)
    for types in (offers.list_key_values("instance_type"), _list_published_types(frozenset(accelerators))):
        added: InstancesByName = {}
        for each in types:
            if (row := accelerators.get(each.accelerator_id)) is not None:
                held = added.setdefault(normalize_part_name(each.name), {})
                if each.accelerator_count >= 1:
                    held[each.accelerator_id] = row.name_system(_build_system(each, row))
        found = added | found
    return found


def _build_system(instance: InstanceType, known: KnownAccelerator) -> KnownSystem:
    """Returns an instance as a system. The network between two instances is not known."""
    links = KnownLinks(known.links.intra_node_link_id)
    return KnownSystem(instance.name, int(instance.accelerator_count), links)


@lru_cache(maxsize=32)
def _list_published_types(accelerator_ids: frozenset[str]) -> tuple[InstanceType, ...]:
    return (*list_instance_types(), *_list_hosts(accelerator_ids))


def _list_hosts(accelerator_ids: Iterable[str]) -> Iterator[InstanceType]:
    """Yields the machine types whose accelerators price lists call by a name of their own."""
    listed = build_accelerators(dict.fromkeys(accelerator_ids, (None, ())))
    for host, (name, count) in load_hosts().items():
        found = resolve_accelerator(listed, name, instance=host)
        if isinstance(found, NamedAccelerator) and found.doubt is None:
            yield InstanceType(host, found.accelerator_id, count)
