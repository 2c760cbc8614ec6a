"""Operators of a block by its layers' shapes, independent of the layout: products and moved elements.

They are derived once for each block and choice of kernels; ``operators.shapes`` divides them over devices.
"""

from service.planning.models.profile.layer_operators.catalog import (
    OperatorCatalog,
    block_templates,
    layer_templates,
    merge_templates,
)
from service.planning.models.profile.layer_operators.kernels import (
    FusedAttention,
    KernelChoice,
    OperatorFusion,
    OperatorKind,
)
from service.planning.models.profile.layer_operators.templates import (
    AttentionTemplate,
    ConvolutionTemplate,
    ExpertsTemplate,
    InteractionTemplate,
    LookupTemplate,
    MatrixTemplate,
    MovedElements,
    OperatorTemplate,
    ScanTemplate,
    StreamedTemplate,
)

__all__ = [
    "AttentionTemplate",
    "ConvolutionTemplate",
    "ExpertsTemplate",
    "FusedAttention",
    "InteractionTemplate",
    "KernelChoice",
    "LookupTemplate",
    "MatrixTemplate",
    "MovedElements",
    "OperatorCatalog",
    "OperatorFusion",
    "OperatorKind",
    "OperatorTemplate",
    "ScanTemplate",
    "StreamedTemplate",
    "block_templates",
    "layer_templates",
    "merge_templates",
]
