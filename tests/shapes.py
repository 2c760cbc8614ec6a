"""Published shapes that several tests use."""

from service.catalog.shipped import list_shipped_documents
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelHead
from service.planning.models.layers import Attention, FeedForward, Normalization
from service.schemas.architectures import Architecture as Shape
from service.schemas.architectures import to_planning


def llama_2_70b() -> Architecture:
    """68,976,648,192 parameters."""
    norm = Normalization(size=8192)
    attention = Attention(hidden_size=8192, query_heads=64, key_value_heads=8, head_size=128)
    feed_forward = FeedForward(hidden_size=8192, inner_size=28_672, gated=True)
    return Architecture(
        embeddings=ModelEmbeddings(size=8192, vocabulary_size=32_000),
        layers=(LayerBlock(layers=(norm, attention, norm, feed_forward), count=80), norm),
        heads=(ModelHead(kind="language_model", input_size=8192, output_size=32_000),),
    )


def catalog_architecture(model_id: str) -> Architecture:
    """A model of the shipped catalog."""
    row = next(row for row in list_shipped_documents()["models"] if row["id"] == model_id)
    return to_planning(Shape.model_validate(row["architecture"]))
