"""Models whose tokens take their experts as a run routes them."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import MixtureOfExperts, SimpleLayer, TokenRouting
from service.planning.models.profile import ModelProfile, build_profile


def route_tokens(profile: ModelProfile, routing: TokenRouting) -> ModelProfile:
    """Returns the coefficients of a model whose tokens are routed by ``routing``.

    With a capacity factor, an expert computes ``capacity_factor`` x tokens x experts a token / experts rows,
    whatever the router says (Fedus et al. 2022, Switch Transformers, section 2.2): tokens beyond are dropped,
    missing ones padded, in buffers whose size is known ahead. Parameters, active ones and the FLOPs of the
    model stay those of the model. Returns ``profile`` itself where no layer has experts.
    """
    described = profile.described
    if described is None or not profile.expert_count or routing == TokenRouting():
        return profile
    return _build_routed_profile(described, routing)


# A question trains one model. More would keep models of callers in memory.
@lru_cache(maxsize=8)
def _build_routed_profile(architecture: Architecture, routing: TokenRouting) -> ModelProfile:
    routed = (
        replace(layer, layers=tuple(_route_layer(each, routing) for each in layer.layers))
        if isinstance(layer, LayerBlock)
        else _route_layer(layer, routing)
        for layer in architecture.layers
    )
    return build_profile(replace(architecture, layers=tuple(routed)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoutedExperts(MixtureOfExperts):
    """Experts to which a run routes its tokens."""

    run_routing: TokenRouting

    @property
    def routing(self) -> TokenRouting:
        return self.run_routing


def _route_layer(layer: SimpleLayer, routing: TokenRouting) -> SimpleLayer:
    if not isinstance(layer, MixtureOfExperts):
        return layer
    known = {each.name: getattr(layer, each.name) for each in fields(MixtureOfExperts)}
    return _RoutedExperts(**known, run_routing=routing)
