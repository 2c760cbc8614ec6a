"""Families of encoders by their type."""

from collections.abc import Mapping
from functools import partial

from service.formats.huggingface.encoders.bert import (
    BERT,
    ROBERTA,
    ROBERTA_CLASSES,
    SHARED_CLASSES,
    EncoderFamily,
    build_encoder,
)
from service.formats.huggingface.encoders.deberta import DEBERTA_CLASSES, build_deberta
from service.formats.huggingface.encoders.heads import HeadPart
from service.formats.huggingface.encoders.jina import build_jina
from service.formats.huggingface.encoders.llama import LLAMA
from service.formats.huggingface.encoders.modernbert import MODERN_CLASSES, build_modernbert
from service.formats.huggingface.encoders.nomic import NOMIC, build_nomic
from service.formats.huggingface.reader import ModelFamily

_SIZES = {
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}


def _build_family(prefix: str, kind: EncoderFamily, **defaults: int) -> ModelFamily:
    return ModelFamily(
        prefix,
        partial(build_encoder, kind),
        tuple(kind.classes),
        "Model",
        "max_position_embeddings",
        {**_SIZES, **defaults},
    )


_GTE = EncoderFamily(
    NOMIC.classes,
    positions=False,
    gated=True,
    gate_bias=False,
    second_bias=False,
)
FAMILIES: Mapping[str, ModelFamily] = {
    "bert": _build_family("Bert", BERT),
    "roberta": _build_family("Roberta", ROBERTA, vocab_size=50_265),
    "xlm-roberta": _build_family("XLMRoberta", ROBERTA)._replace(build=build_jina),
    "camembert": _build_family("Camembert", ROBERTA),
    "albert": _build_family(
        "Albert",
        EncoderFamily(
            {
                **SHARED_CLASSES,
                "ForPreTraining": (HeadPart.WORDS, HeadPart.POOLER, HeadPart.LABELS),
            },
            narrow_embeddings=True,
            usual_function="gelu_new",
            always_projects=True,
            shares_layers=True,
        ),
        vocab_size=30_000,
        embedding_size=128,
        hidden_size=4096,
        num_attention_heads=64,
        intermediate_size=16_384,
    ),
    "electra": _build_family(
        "Electra",
        EncoderFamily(
            {
                "Model": (),
                "ForPreTraining": (HeadPart.EACH,),
                "ForMaskedLM": (HeadPart.WORDS,),
                "ForSequenceClassification": (HeadPart.DENSE, HeadPart.LABELS),
                "ForTokenClassification": (HeadPart.TOKENWISE_LABELS,),
                "ForQuestionAnswering": (HeadPart.TOKENWISE_LABELS,),
            },
            narrow_embeddings=True,
            second_bias=False,
        ),
        embedding_size=128,
        hidden_size=256,
        num_attention_heads=4,
        intermediate_size=1024,
    ),
    "distilbert": ModelFamily(
        "DistilBert",
        partial(
            build_encoder,
            EncoderFamily(
                {
                    "Model": (),
                    "ForMaskedLM": (HeadPart.WORDS,),
                    "ForSequenceClassification": (HeadPart.DENSE, HeadPart.LABELS),
                    "ForMultipleChoice": (HeadPart.DENSE, HeadPart.ONE),
                    "ForTokenClassification": (HeadPart.TOKENWISE_LABELS,),
                    "ForQuestionAnswering": (HeadPart.TOKENWISE_LABELS,),
                },
                hidden="dim",
                heads="n_heads",
                depth="n_layers",
                inner="hidden_dim",
                function="activation",
                hidden_dropout="dropout",
                attention_dropout="attention_dropout",
                token_types=False,
                second_bias=False,
            ),
        ),
        (
            "Model",
            "ForMaskedLM",
            "ForSequenceClassification",
            "ForMultipleChoice",
            "ForTokenClassification",
            "ForQuestionAnswering",
        ),
        "Model",
        "max_position_embeddings",
        {
            "vocab_size": 30_522,
            "max_position_embeddings": 512,
            "n_layers": 6,
            "n_heads": 12,
            "dim": 768,
            "hidden_dim": 3072,
        },
    ),
    "mpnet": _build_family(
        "MPNet",
        EncoderFamily(ROBERTA_CLASSES, token_types=False, relative_buckets=True),
        vocab_size=30_527,
        relative_attention_num_buckets=32,
    ),
    "llama_bidirec": LLAMA,
    "nomic_bert": _build_family("NomicBert", NOMIC, vocab_size=30_528, max_position_embeddings=2048)._replace(
        build=build_nomic
    ),
    "jina_embeddings_v3": _build_family(
        "JinaEmbeddingsV3",
        ROBERTA._replace(positions=False),
        vocab_size=250_002,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=8194,
        type_vocab_size=1,
    ),
    "gte": _build_family("Gte", _GTE, vocab_size=250_048, max_position_embeddings=8192, type_vocab_size=1),
    # The first name of GTE 1.5.
    "new": _build_family("New", _GTE),
    "modernbert": ModelFamily(
        "ModernBert",
        build_modernbert,
        tuple(MODERN_CLASSES),
        "Model",
        "max_position_embeddings",
        {
            "vocab_size": 50_368,
            "hidden_size": 768,
            "intermediate_size": 1152,
            "num_hidden_layers": 22,
            "num_attention_heads": 12,
            "max_position_embeddings": 8192,
            "local_attention": 128,
            "global_attn_every_n_layers": 3,
        },
    ),
    "deberta": ModelFamily(
        "Deberta",
        build_deberta,
        tuple(DEBERTA_CLASSES),
        "Model",
        "max_position_embeddings",
        {**_SIZES, "vocab_size": 50_265},
    ),
    "deberta-v2": ModelFamily(
        "DebertaV2",
        partial(build_deberta, second=True),
        (*DEBERTA_CLASSES,),
        "Model",
        "max_position_embeddings",
        {
            **_SIZES,
            "vocab_size": 128_100,
            "hidden_size": 1536,
            "num_hidden_layers": 24,
            "num_attention_heads": 24,
            "intermediate_size": 6144,
        },
    ),
}
