"""XLM-RoBERTa and what jina-embeddings-v3 adds to it."""

from dataclasses import replace

from service.formats.huggingface.encoders.bert import ROBERTA, build_encoder
from service.formats.huggingface.parts import build_learned_vectors, build_unsupported_error
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture


def build_jina(reader: ConfigReader, suffix: str) -> Architecture:
    """XLM-RoBERTa, and jina-embeddings-v3 under its name: rotary positions, an adapter for each task."""
    adapters = reader.config.get("lora_adaptations")
    rotary = reader.read_value("position_embedding_type") == "rotary"
    plain = build_encoder(ROBERTA._replace(positions=not rotary), reader, suffix)
    if adapters is None:
        return plain
    if not isinstance(adapters, list) or suffix != "Model":
        raise build_unsupported_error(
            "lora_adaptations", "only a list of tasks of the bare model is known here"
        )
    hidden, rank = reader.read_size("hidden_size"), reader.read_size("lora_rank") * len(adapters)
    inner, depth = reader.read_size("intermediate_size"), reader.read_depth("num_hidden_layers")
    tables = reader.read_size("vocab_size") + reader.read_count("type_vocab_size") + 2 * hidden
    # Both factors of each product: of the query, key and value as one, of the output, the two matrices
    # of the feed-forward, and of the pooler; and of the two tables.
    matrices = depth * (4 * hidden + 2 * hidden + 2 * (hidden + inner)) + 2 * hidden
    added = build_learned_vectors("modulation", rank, matrices + tables)
    return replace(plain, layers=(*plain.layers, added))
