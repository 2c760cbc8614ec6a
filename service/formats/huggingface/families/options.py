"""Options that descriptions of several kinds of decoders share."""

from service.formats.huggingface.decoders import AttentionOptions

PARALLEL = "norm mixer ffn"
AROUND = "norm mixer norm norm ffn norm"
BEHIND = "mixer norm ffn norm"
NORMED = AttentionOptions(norm="head")
NORMED_PLAIN = AttentionOptions(bias=False, norm="head")
WHOLE = AttentionOptions(norm="projection")
PLAIN = AttentionOptions(bias=False)
