"""Operators of every block of a model, derived once for each block and choice of kernels."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import singledispatch

from service.planning.models.architecture import LayerBlock, ModelHead
from service.planning.models.profile.layer_operators.attention import (
    list_attention_operators,
    list_compressed_attention_operators,
    list_latent_attention_operators,
)
from service.planning.models.profile.layer_operators.elementary import (
    list_activation_operators,
    list_convolution_operators,
    list_embedding_table_operators,
    list_interaction_operators,
    list_learned_vectors_operators,
    list_modulation_operators,
    list_normalization_operators,
    list_resampling_operators,
)
from service.planning.models.profile.layer_operators.feed_forward import (
    list_experts_operators,
    list_feed_forward_operators,
)
from service.planning.models.profile.layer_operators.kernels import KernelChoice
from service.planning.models.profile.layer_operators.matrices import build_bias_gradients, build_matrices
from service.planning.models.profile.layer_operators.recurrent import (
    list_linear_attention_operators,
    list_state_space_operators,
)
from service.planning.models.profile.layer_operators.templates import (
    MatrixTemplate,
    MovedElements,
    OperatorTemplate,
    StreamedTemplate,
)


@singledispatch
def layer_templates(layer: object, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the operators of one layer; matrices alone for kinds without a separate case."""
    tensors = list(layer.list_tensors())  # type: ignore[attr-defined]
    yield from build_matrices(tensors, choice)
    if choice.trained is None:
        yield from build_bias_gradients(tensors)


layer_templates.register(list_attention_operators)
layer_templates.register(list_latent_attention_operators)
layer_templates.register(list_compressed_attention_operators)
layer_templates.register(list_linear_attention_operators)
layer_templates.register(list_state_space_operators)
layer_templates.register(list_feed_forward_operators)
layer_templates.register(list_experts_operators)
layer_templates.register(list_normalization_operators)
layer_templates.register(list_activation_operators)
layer_templates.register(list_resampling_operators)
layer_templates.register(list_convolution_operators)
layer_templates.register(list_modulation_operators)
layer_templates.register(list_interaction_operators)
layer_templates.register(list_embedding_table_operators)
layer_templates.register(list_learned_vectors_operators)


def merge_templates(templates: Iterable[tuple[OperatorTemplate, float]]) -> tuple[OperatorTemplate, ...]:
    """Merges equal operators into one that occurs more often, and memory-bound ones by name."""
    streamed: dict[tuple[str, float], StreamedTemplate] = {}
    others: dict[OperatorTemplate, OperatorTemplate] = {}
    for template, count in templates:
        if isinstance(template, StreamedTemplate):
            key = (template.name, template.gathers)
            known = streamed.get(key) or StreamedTemplate(
                template.name, MovedElements(), MovedElements(), template.gathers
            )
            streamed[key] = known._replace(
                forward=known.forward.add_scaled(template.forward, count),
                backward=known.backward.add_scaled(template.backward, count),
            )
            continue
        alike = template._replace(name="", times=1.0)
        known_one = others.get(alike)
        times = template.times * count + (known_one.times if known_one else 0.0)  # type: ignore[union-attr]
        name = template.name
        if known_one and name not in known_one.name.split("+"):
            name = f"{known_one.name}+{name}"
        others[alike] = template._replace(name=name, times=times)
    return (*others.values(), *streamed.values())


def block_templates(block: LayerBlock, choice: KernelChoice) -> tuple[OperatorTemplate, ...]:
    """Returns the operators of one repetition of a block, equal ones together."""
    return merge_templates(
        (template, float(layer.count))
        for layer in block.layers
        for template in layer_templates(layer, choice)
    )


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCatalog:
    """Operators of every block of a model, for each requested choice of kernels.

    ``loose`` are the norms and matrices outside the blocks, before the heads. ``heads`` are used without the
    language model's, which tensor parallelism divides and a loss follows.
    """

    blocks: tuple[LayerBlock, ...] = ()
    loose: tuple[LayerBlock, ...] = ()
    heads: tuple[ModelHead, ...] = ()
    _known: dict[KernelChoice, tuple[tuple[OperatorTemplate, ...], ...]] = field(
        default_factory=dict, repr=False
    )
    _loose: dict[KernelChoice, tuple[OperatorTemplate, ...]] = field(default_factory=dict, repr=False)

    def get_block_templates(self, choice: KernelChoice) -> tuple[tuple[OperatorTemplate, ...], ...]:
        """Returns templates of one repetition of each block, in order.

        Blocks of the same content share theirs.
        """
        known = self._known.get(choice)
        if known is None:
            distinct = {block: block_templates(block, choice) for block in set(self.blocks)}
            known = self._known[choice] = tuple(distinct[block] for block in self.blocks)
        return known

    def get_outside_templates(self, choice: KernelChoice) -> tuple[OperatorTemplate, ...]:
        """Returns templates of all layers outside the blocks."""
        known = self._loose.get(choice)
        if known is None:
            found = (
                (template, float(layer.count * block.count))
                for block in self.loose
                for layer in block.layers
                for template in layer_templates(layer, choice)
            )
            trained = choice.trained is None
            heads = (
                (MatrixTemplate("head", head.input_size, head.output_size, trained=trained), 1.0)
                for head in self.heads
                if head.per == "token" and head.kind != "language_model"
            )
            known = self._loose[choice] = merge_templates((*found, *heads))
        return known
