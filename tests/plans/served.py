"""Spaces of services, and what asking for each of their configurations alone finds."""

import json
import math

from service.planning.notes import AnswerNotes
from service.plans.serving import search_services, split_services
from service.plans.space import NOTHING, SearchSpace
from service.resolve.model import resolve_model
from service.schemas.plan_answers import PruningRule
from service.schemas.plans import PlanRequest
from service.schemas.references import ClusterInput
from tests.asking import ask, shipped


def machine(accelerator, most, **members):
    """A kind of devices of the catalog, and the most of them."""
    return {
        "accelerator": {"source": "catalog", "id": accelerator},
        "accelerator_count": most,
        **members,
    }


def space_of(machines, catalog=None, model="llama-3.1-8b", search=None, **workload):
    """The space of a service on some kinds of devices."""
    catalog = catalog or shipped()
    question = {
        "model": model if isinstance(model, dict) else {"source": "catalog", "id": model},
        "workload": {"kind": "inference", "input_tokens": 2000, "output_tokens": 300, **workload},
        "goal": "cheapest",
        "search": {"serving": search or {}},
    }
    parsed = PlanRequest.model_validate_json(json.dumps(question))
    clusters = tuple(ClusterInput.model_validate_json(json.dumps(each)) for each in machines)
    return SearchSpace(parsed, catalog, resolve_model(parsed.model, catalog, AnswerNotes()), clusters, ())


def searched(space, rules=tuple(PruningRule)):
    """What became of all of a space, each of its parts after a round trip through JSON."""
    found = NOTHING
    for piece in split_services(space):
        found = found.add(
            search_services(space, piece._replace(part=json.loads(json.dumps(piece.part))), rules)
        )
    return found


def asking(space, place, layout, replicas, **settings):
    """The questions about so many replicas of a layout, without what belongs to the search."""
    given = space.question.model_dump(mode="json")
    data = layout.get("data", 1) * replicas
    devices = layout["tensor"] * layout.get("pipeline", 1) * data
    cluster = space.clusters[place].model_dump(mode="json")
    return {
        "model": given["model"],
        "workload": {**given["workload"], **settings},
        "cluster": {**cluster, "accelerator_count": devices},
        "parallelism": {**layout, "data": data},
    }


def carried(question, catalog=None):
    """The answer of a question that carries its load within its levels, else None."""
    memory = ask(catalog or shipped(), "memory", question)
    asked = question["workload"].get("concurrency", 1)
    if not memory["fits"] or memory["limits"].get("max_concurrency", asked) < asked:
        return None
    answer = ask(catalog or shipped(), "throughput", {**question, "explain": False})
    arrives = "concurrency" not in question["workload"]
    if arrives and answer["saturation"]["saturated"]:
        return None
    levels = answer.get("service_level_goodput")
    return answer if levels is None or levels["attained"] else None


def fewest_alone(space, place, layout, catalog=None, **settings):
    """Replicas and answer of the fewest that carry the load, each number asked for alone."""
    each = layout["tensor"] * layout.get("pipeline", 1) * layout.get("data", 1)
    asked = space.question.workload.model_dump(mode="json").get("concurrency", math.inf)
    most = min(space.clusters[place].accelerator_count // each, asked)
    for replicas in range(1, most + 1):
        answer = carried(asking(space, place, layout, replicas, **settings), catalog)
        if answer is not None:
            return replicas, answer
    return None
