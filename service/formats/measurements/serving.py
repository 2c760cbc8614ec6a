"""Names of the metrics of serving benchmarks, the same for every format."""

from typing import Final

FIRST_TOKEN: Final = "time_to_first_token_seconds"  # noqa: S105
OUTPUT_TOKEN: Final = "time_per_output_token_seconds"  # noqa: S105
"""Mean of a request from its first token to its last, over the tokens behind the first."""
GAP: Final = "inter_token_latency_seconds"
"""Every gap for itself: a chunk of several tokens is one gap."""
REQUEST: Final = "request_seconds"
REQUESTS: Final = "requests_per_second"
OUTPUT: Final = "output_tokens_per_second"
TOTAL: Final = "total_tokens_per_second"
"""Tokens of prompts and of answers."""
INPUT: Final = "input_tokens_per_second"
POWER: Final = "power_per_device_watts"
"""Figures of the whole system but for power, over the run."""
