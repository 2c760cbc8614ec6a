"""Feed-forward layers, dense and as a mixture of experts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self, TypeAlias

from service.planning.errors import PlanningError
from service.planning.hardware.traffic import ExpertChoice
from service.planning.models.layers.tensors import LayerTensor, TensorSplit, build_matrix, build_vectors

ActivationFunction: TypeAlias = Literal["smooth", "relu", "quick_gelu", "gelu_new"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """Two matrices with an activation between them; a gate adds a third."""

    kind: ClassVar[Literal["feed_forward"]] = "feed_forward"
    hidden_size: int
    inner_size: int
    """Width between the matrices."""
    gated: bool = False
    """True if a third matrix, beside the first, gates its result."""
    bias: bool = False
    inner_norm: bool = False
    """True if a norm stands in front of the last matrix."""
    activation_parameters: int = 0
    """Number of learned scalars of the activation function."""
    activation: ActivationFunction = "smooth"
    """Activation function: one operator whose backward pass needs its input (``smooth``) or only its result
    (``relu``), or several operators, as PyTorch's classes write it out, each of which keeps a tensor of its
    own (``quick_gelu``, ``gelu_new``)."""
    dropout: bool = False
    """True if the output passes a dropout in training."""
    inner_dropout: bool = False
    """True if the result of the activation passes a dropout in training."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Up (and gate) and down projections with their biases."""
        for name in ("gate", "up") if self.gated else ("up",):
            yield build_matrix(name, self.hidden_size, self.inner_size, TensorSplit.COLUMN)
            yield from build_vectors(self.bias, f"{name}_bias", self.inner_size, TensorSplit.COLUMN)
        yield build_matrix("down", self.inner_size, self.hidden_size, TensorSplit.ROW)
        yield from build_vectors(self.bias, "down_bias", self.hidden_size)
        yield from build_vectors(self.inner_norm, "inner_norm", self.inner_size, TensorSplit.COLUMN)
        yield from build_vectors(self.activation_parameters > 0, "activation", self.activation_parameters)


class TokenRouting(NamedTuple):
    """Routing of tokens to their experts in a run."""

    capacity_factor: float | None = None
    """Rows that each expert computes over the mean of its tokens; None where no token is dropped."""
    is_forced: bool = False
    """True if the run overrides the router, so that every expert takes as many tokens."""

    @property
    def padding(self) -> float:
        """Rows that experts compute over the tokens that take them."""
        return self.capacity_factor or 1.0

    @property
    def is_even(self) -> bool:
        """True if every expert computes as many rows."""
        return self.is_forced or self.capacity_factor is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """A router over feed-forwards, with an optional expert that every token takes."""

    kind: ClassVar[Literal["mixture_of_experts"]] = "mixture_of_experts"
    hidden_size: int
    expert_count: int
    """Number of experts to choose from."""
    experts_per_token: int
    """Number of experts that each token takes."""
    expert_inner_size: int
    """Width between the matrices of an expert."""
    image_expert_inner_size: int | None = None
    """Width between the matrices of the experts that positions of images take in place of the others: as
    many, with a router of their own; absent where all positions take the same."""
    expert_groups: int | None = None
    """Number of groups that the experts are divided into, of which a token takes some; absent without."""
    groups_per_token: int | None = None
    """Number of groups that the experts of a token lie in at most."""
    gated: bool = True
    """True if an expert has a third matrix as a gate."""
    bias: bool = False
    router_bias: bool = False
    """True if a learned vector is added to the router."""
    router_scales: bool = False
    """True if the input of the router and its answers have learned scales."""
    latent_size: int | None = None
    """Width that tokens are projected to for the routed experts, and back from (LatentMoE); absent where they
    keep their width."""
    shared_inner_size: int | None = None
    """Inner width of the expert that every token takes; absent without one."""
    shared_bias: bool = False
    """True if learned vectors are added in the shared expert."""
    shared_gate: bool = False
    """True if the shared expert has a gate of its own."""
    count: int = 1

    @property
    def routed_count(self) -> int:
        """Experts that the router tells apart; fewer than are held where some are copies of others."""
        return self.expert_count

    @property
    def routing(self) -> TokenRouting:
        """Routing of the tokens: that of a trained router, unless a run has another."""
        return TokenRouting()

    @property
    def rows_per_token(self) -> float:
        """Rows that experts compute for a token: one each, or those of their capacity."""
        return self.experts_per_token * self.routing.padding

    @property
    def choice(self) -> ExpertChoice:
        """Experts of a token, and the groups that they lie in."""
        groups, routing = self.expert_groups or 1, self.routing
        return ExpertChoice(
            float(self.experts_per_token),
            groups,
            self.groups_per_token or groups,
            routing.padding,
            is_even=routing.is_even,
            is_limited=routing.capacity_factor is not None,
        )

    @property
    def widest_inner_size(self) -> int:
        """Width between the matrices of the widest experts."""
        return max(self.expert_inner_size, self.image_expert_inner_size or 0)

    @property
    def for_text(self) -> Self:
        """The layer as tokens of text pass it."""
        return replace(self, image_expert_inner_size=None)

    @property
    def for_images(self) -> Self:
        """The layer as positions of images pass it."""
        inner = self.image_expert_inner_size or self.expert_inner_size
        return replace(self, expert_inner_size=inner, image_expert_inner_size=None)

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Router, experts (each counted whole, active by share), the shared expert, and experts of images."""
        if self.experts_per_token > self.expert_count:
            raise PlanningError(
                "EXPERTS_PER_TOKEN", "/experts_per_token", "experts_per_token exceeds expert_count"
            )
        if (self.groups_per_token or 0) > (self.expert_groups or 0):
            raise PlanningError(
                "GROUPS_PER_TOKEN", "/groups_per_token", "groups_per_token exceeds expert_groups"
            )
        yield from self._list_router()
        if self.latent_size is not None:
            yield build_matrix("latent_down", self.hidden_size, self.latent_size)
            yield build_matrix("latent_up", self.latent_size, self.hidden_size)
        yield from self._list_experts(self.expert_inner_size)
        if self.shared_inner_size is not None:
            shared = FeedForward(
                hidden_size=self.hidden_size,
                inner_size=self.shared_inner_size,
                gated=self.gated,
                bias=self.shared_bias,
            )
            for tensor in shared.list_tensors():
                yield tensor._replace(name=f"shared_{tensor.name}")
        if self.shared_gate:
            yield build_matrix("shared_router", self.hidden_size, 1)
        if self.image_expert_inner_size is not None:
            for tensor in (*self._list_router(), *self._list_experts(self.image_expert_inner_size)):
                yield tensor._replace(active=0.0, of_images=True)

    def _list_router(self) -> Iterator[LayerTensor]:
        yield build_matrix("router", self.hidden_size, self.routed_count)
        yield from build_vectors(self.router_bias, "router_bias", self.routed_count)
        yield from build_vectors(self.router_scales, "router_scales", self.hidden_size + self.routed_count)

    def _list_experts(self, inner: int) -> Iterator[LayerTensor]:
        share = self.experts_per_token / self.expert_count
        width = self.latent_size or self.hidden_size
        for name in ("gate", "up", "down") if self.gated else ("up", "down"):
            shape = (self.expert_count, width, inner)
            yield LayerTensor(f"expert_{name}", shape, TensorSplit.EXPERT, multiplied=share, active=share)
            if self.bias:
                size = width if name == "down" else inner
                yield LayerTensor(
                    f"expert_{name}_bias", (self.expert_count, size), TensorSplit.EXPERT, active=share
                )
