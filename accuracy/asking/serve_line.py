"""Settings of a serving engine from its start command."""

import json
import re
from typing import Any, Final

from accuracy.rows import MeasuredRow

_SERVE: Final = re.compile(r"\bserve: (?P<command>.*?)(?:; variant: (?P<variant>.*))?$")
_VALUE: Final = r"[= ]\s*(\d+)\b"
_NUMBERS: Final = {
    "pipeline": ("--pp-size", "--pipeline-parallel-size", "--pp_size"),
    "max_num_seqs": ("--max-num-seqs", "--max-running-requests", "--max_batch_size", "--max-batch-size"),
    "max_batched_tokens": ("--max-num-batched-tokens", "--chunked-prefill-size", "--max_num_tokens"),
}
_MTP_STEPS: Final = re.compile(r"--speculative-num-steps[= ]\s*(\d+)")
_SPECULATIVE: Final = re.compile(r"--speculative-config[= ](\{[^}]*\})")
_CACHE: Final = re.compile(r"--kv-cache-dtype[= ](\w+)")
_CLIENT_BATCH: Final = re.compile(r"\bbatch size (\d+)\b")
_OWN_HEADS: Final = frozenset({"mtp", "deepseek_mtp", "qwen3_next_mtp", "EAGLE", "NEXTN"})
"""Names of engines for proposals by a model's own heads."""


def command(row: MeasuredRow) -> str:
    """Returns the command of the row's server with flags of a variant, or an empty string."""
    match = _SERVE.search(row.text.get("notes", ""))
    if match is None:
        return ""
    variant = match["variant"] or ""
    return f"{match['command']} {variant if variant.startswith('--') else ''}"


def number(row: MeasuredRow, name: str) -> int | None:
    """Returns a numeric setting. The last of repeated flags counts."""
    text = command(row)
    found = [
        (match.start(), match[1]) for flag in _NUMBERS[name] for match in re.finditer(flag + _VALUE, text)
    ]
    return int(max(found)[1]) if found else None


def speculation(row: MeasuredRow) -> dict[str, Any] | None:
    """Returns the speculative decoding with the model's own heads that the command sets."""
    text = command(row)
    stated = _SPECULATIVE.search(text)
    if stated:
        config = json.loads(stated[1])
        if config.get("method") in _OWN_HEADS:
            return {"method": "mtp", "tokens": int(config.get("num_speculative_tokens", 1))}
    steps = _MTP_STEPS.search(text)
    if steps and any(f"--speculative-algorithm {name}" in text for name in _OWN_HEADS):
        return {"method": "mtp", "tokens": int(steps[1])}
    return None


def cache_precision(row: MeasuredRow) -> str | None:
    """Returns the format of the KV cache, or None."""
    stated = _CACHE.search(command(row))
    return stated[1].partition("_")[0] if stated and stated[1] != "auto" else None


def chunked_prefill(row: MeasuredRow) -> bool | None:
    """Returns true or false if the command turns chunked prefill on or off, else None."""
    text = command(row).replace("_", "-")
    if "--no-enable-chunked-prefill" in text:
        return False
    return True if "--enable-chunked-prefill" in text else None


def client_batch(row: MeasuredRow) -> int | None:
    """Returns the concurrency of the client if the variant states it."""
    match = _SERVE.search(row.text.get("notes", ""))
    found = _CLIENT_BATCH.search(match["variant"] or "") if match else None
    return int(found[1]) if found else None
