"""Rates and hops of measured links."""

from collections.abc import Callable, Sequence

from service.planning.hardware.calibration.links import LinkCalibration, LinkCurves, LinkShare
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure, MeasuredLink
from service.planning.hardware.links import LinkKind
from service.planning.hardware.nearest import ConstantSearch, RequestedDevice


def resolve_links(known: LinkCurves, search: ConstantSearch, asked: RequestedDevice) -> LinkCurves:
    """Returns the curves of links with the rates and hops that were measured."""
    own, ends, sources = dict(asked.links), [known.slow, known.value, known.fast], dict(known.sources)
    measured = set(known.measured)
    for kind in LinkKind:

        def build_link_lookup(
            name: str, kind: LinkKind = kind
        ) -> Callable[[DeviceCalibration], MeasuredFigure | None]:
            def find_figure(each: DeviceCalibration) -> MeasuredFigure | None:
                link: MeasuredLink | None = each.links.get(kind)
                return link and getattr(link, name)

            return find_figure

        rate = search.find_share(f"links.{kind}.rate", build_link_lookup("rate"), own.get(kind))
        if rate is None:
            continue
        hop = search.find_seconds(f"links.{kind}.hop_seconds", build_link_lookup("hop_seconds"))
        through = search.find_share(
            f"links.{kind}.in_network_rate", build_link_lookup("in_network_rate"), own.get(kind)
        )
        launch = search.find_seconds(f"links.{kind}.launch_seconds", build_link_lookup("launch_seconds"))
        # Slow ends have a low rate and long seconds.
        for place, (share, end) in enumerate(zip(rate.ends, ("high", "value", "low"), strict=True)):
            before = ends[place]
            link = LinkShare(share, getattr(hop, end) if hop else before.links[kind].hop_seconds)
            ends[place] = before._replace(
                links={**before.links, kind: link},
                launch_seconds=getattr(launch, end) if launch else before.launch_seconds,
            )
        if through is not None:
            ends = _apply_switch_shares(ends, asked.accelerator.generation, through.ends)
        measured.add(kind)
        sources[kind] = rate.source
    if measured == known.measured and sources == known.sources:
        return known
    slow, value, fast = ends
    return LinkCurves(slow, value, fast, frozenset(measured), sources)


def _apply_switch_shares(
    ends: Sequence[LinkCalibration], generation: str, shares: Sequence[float]
) -> list[LinkCalibration]:
    """Returns both ends and the middle with the measured shares of reducing switches."""
    return [
        end._replace(in_network={**end.in_network, generation: share})
        for end, share in zip(ends, shares, strict=True)
    ]
