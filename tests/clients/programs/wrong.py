"""Mistakes, each of which mypy has to find on its line."""

from ironlaw_client import Ironlaw
from ironlaw_client.types import MemoryEstimateRequest

client = Ironlaw()
request: MemoryEstimateRequest = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {"kind": "inferring"},  # wrong
}
client.estimates.memory({"model": {"source": "catalog", "id": "llama-3.1-8b"}})  # wrong
client.offers.delete("one")  # wrong
client.plans.list(state="ended")  # wrong
print(client.models.get("one")["parameters"])  # wrong
