"""The four answers to one training question hold for the same configuration."""

from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.errors import PlanningError
from tests.asking import ask, question, shipped

OPERATIONS = ("memory", "throughput", "cost", "utility-bill")

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "bert-large", "vit-large-patch16-224")
ACCELERATORS = ("h100-sxm", "a100-sxm-80gb", "mi300x", "tpu-v5p", "l40s", "trainium2")
FRAMEWORKS = (None, "megatron_core", "fsdp", "torchtitan", "deepspeed", "maxtext", "transformers")
LAYOUTS = (None, None, {}, {"tensor": 2}, {"pipeline": 2}, {"tensor": 2, "pipeline": 2})

questions = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "accelerator": st.sampled_from(ACCELERATORS),
        "count": st.sampled_from((1, 4, 8, 24, 64)),
        "framework": st.sampled_from(FRAMEWORKS),
        "layout": st.sampled_from(LAYOUTS),
        "batch": st.sampled_from((None, None, 64, 100)),
        "adaptation": st.sampled_from(("full", "lora")),
    }
)


def build_question(drawn):
    workload = {"sequence_length": 2048, "total_steps": 1000, "adaptation": {"kind": drawn["adaptation"]}}
    if drawn["framework"] is not None:
        workload["framework"] = {"name": drawn["framework"]}
    if drawn["batch"] is not None:
        workload["global_batch_size"] = drawn["batch"]
    asked = question(drawn["model"], drawn["accelerator"], drawn["count"], **workload)
    return asked if drawn["layout"] is None else {**asked, "parallelism": drawn["layout"]}


def answer_or_refusal(operation, asked):
    """Layout, defaults and sequences of a step; code and pointer where the question is refused."""
    try:
        answer = ask(shipped(), operation, asked)
    except PlanningError as refused:
        return refused.code, refused.pointer
    return answer["parallelism"], answer["defaults"]


@settings(max_examples=15, deadline=None)
@given(questions)
def test_memory_throughput_cost_and_bill_name_the_same_layout(drawn):
    asked = build_question(drawn)
    first, *others = [answer_or_refusal(operation, asked) for operation in OPERATIONS]
    assert all(other == first for other in others)
