"""The question of the first start, apart from the other examples, which take long to build."""

from typing import Any, Final

REFERENCE_QUESTION: Final[dict[str, Any]] = {
    "model": {"source": "parameter_count", "parameter_count": 70_000_000_000},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1000},
    "workload": {"kind": "training", "total_tokens": 2_000_000_000_000, "sequence_length": 4096},
    "efficiency": {"source": "assumed", "utilization": 0.5},
    "rental": {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}},
    "purchase": {"price_per_device": {"amount": "30000", "currency_code": "USD"}},
}
"""A 70-billion-parameter model on two trillion tokens, with a thousand H100 rented or bought."""
REFERENCE_SITE: Final[dict[str, Any]] = {
    "pue": 1.12,
    "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}},
    "carbon_intensity_kg_co2e_per_kwh": 0.429,
}
