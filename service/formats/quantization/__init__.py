"""Storage format of a checkpoint's weights, from the ``quantization_config`` of its ``config.json``.

Supported are GPTQ, AWQ, AutoRound, FP8 (a tensor, a block), FBGEMM FP8, bitsandbytes, MXFP4,
compressed-tensors, ModelOpt (FP8, NVFP4), EETQ, HQQ and MLX, with their groups, zero points and the modules
that they leave alone, and the file types of llama.cpp. Embedding tables, norms and routers stay wide under
all of them but MLX and llama.cpp, heads unless the configuration packs them.
"""

from service.formats.quantization.checkpoint import find_quantization, read_checkpoint_format
from service.formats.quantization.methods import MLX

__all__ = [
    "MLX",
    "find_quantization",
    "read_checkpoint_format",
]
