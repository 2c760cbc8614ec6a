"""Facts of serving rows from outside of their columns: recipes, data sets and releases of sources."""

import math
import re
from collections.abc import Mapping
from typing import Final

from accuracy import mlperf
from accuracy.facts import engine
from accuracy.rows import MeasuredRow

_RECIPES: Final = re.compile(r"#(20\d\d_\d\d_\d\d_|\w+_cfg\d+$|\w+_gap_analysis_)")


def is_sweep_of_recipes(row: MeasuredRow) -> bool:
    """Returns true if a row of the silicon sample is from InferenceX: its key has a date or configuration."""
    return bool(_RECIPES.search(row.text.get("source_ref", "")))


_WITHOUT_HEADS, _WITH_HEADS = "1.2.0rc6.post2", "1.2.0rc6.post3"
_MEASURED: Final = re.compile(r"measured (20\d\d-\d\d)")
_FIRST_WITH_HEADS: Final = "2026-01"


def recipe_speculates(row: MeasuredRow) -> bool | None:
    """Returns true if a recipe of InferenceX uses the model's own heads, None if that is unknown.

    Its perf-changelog.yaml: recipes of TensorRT-LLM without them moved to 1.2.0rc6.post2, those with them to
    the next container; both came with 1.1.0rc2.post2 in January 2026, before which there were none.
    """
    if engine(row) != "tensorrt-llm" or "decode" in row.layout:
        return None
    month = _MEASURED.search(row.text.get("notes", ""))
    version = row.text.get("engine_version", "")
    if version in (_WITHOUT_HEADS, _WITH_HEADS):
        return version == _WITH_HEADS
    if month is None or month[1] > _FIRST_WITH_HEADS:
        return None
    if month[1] == _FIRST_WITH_HEADS:
        return True if version.startswith("1.1") else None
    return False


def recipe_tokens_ahead(row: MeasuredRow) -> int:
    """Returns the number of tokens that the model's own heads propose in recipes.

    TensorRT-LLM 3, with data-parallel attention 1; SGLang 2 (num-steps).
    """
    if engine(row) == "sglang":
        return 2
    return 1 if int(row.layout.get("attention_data") or 1) > 1 else 3


_SWEEPS: Final = "aiconfigurator silicon sample"
_ALIGNED, _SPARE_TOKENS = 64, 1500


def recipe_limits(row: MeasuredRow) -> dict[str, int]:
    """Returns the most requests and tokens of an iteration, if the recipes of a source set them.

    InferenceX has TensorRT-LLM take one prompt beside all requests; the rules by which the other sweeps of
    the silicon sample are run (rule_plugin/benchmark of aiconfigurator) leave 1,500 tokens beside these,
    SGLang's beside the prompt alone.
    """
    recipe = is_sweep_of_recipes(row)
    if "decode" in row.layout or not (recipe or row.source == _SWEEPS):
        return {}
    batch = row.batch.get("batch_per_rank") or row.batch.get("concurrency")
    name, prompt = engine(row), row.length.get("input_tokens")
    if not batch or not prompt:
        return {}
    if recipe:
        concurrency = row.batch.get("concurrency")
        if name != "tensorrt-llm" or not concurrency:
            return {}
        tokens = math.ceil((concurrency + prompt + _ALIGNED) / _ALIGNED) * _ALIGNED
        return {"max_num_seqs": math.ceil(concurrency), "max_batched_tokens": tokens}
    beside = 0 if name == "sglang" else batch
    return {"max_batched_tokens": math.ceil(beside + prompt) + _SPARE_TOKENS}


_EVEN: Final = tuple((0.2, 0.82 + 0.04 * place) for place in range(5))

_ANSWERS: Final = (
    *((0.10, 0.08), (0.15, 0.27), (0.25, 0.66), (0.25, 1.15)),
    *((0.15, 1.85), (0.05, 2.40), (0.04, 2.80), (0.01, 3.20)),
)
_ANSWERS_AND_QUESTIONS: Final = (
    *((0.10, 0.03), (0.15, 0.08), (0.25, 0.34), (0.25, 1.02)),
    *((0.15, 2.04), (0.05, 2.96), (0.04, 3.70), (0.01, 4.40)),
)
_ANSWERS_ABOVE: Final = 240.0
"""Mean tokens above which the outputs of ShareGPT are answers only."""


def drawn_lengths(row: MeasuredRow, name: str) -> tuple[tuple[float, float], ...]:
    """Returns classes of a length as the source draws it: share of requests, and length over the stated one.

    InferenceX draws evenly from 0.8 to 1.0. GPUStack sends ShareGPT with the data set's own outputs: at one
    request a second, where every token takes as long, half of the answers took at most 0.89 times the mean,
    95% 2.6 and 99% 3.0 times (qwen3.5-9b/h100-latency.md). vLLM's client takes the first two turns of a
    conversation; three of ten conversations begin in the middle, where the output is a short message of the
    user.
    """
    if is_sweep_of_recipes(row):
        return _EVEN
    if name != "output_tokens" or not is_share_gpt(row):
        return ()
    return _ANSWERS if row.length[name] > _ANSWERS_ABOVE else _ANSWERS_AND_QUESTIONS


_PERFORMANCE_LAB: Final = "GPUStack performance lab"


def is_share_gpt(row: MeasuredRow) -> bool:
    """Returns true if a row of GPUStack sends ShareGPT.

    Its random prompts have round lengths of their own.
    """
    prompt = row.length.get("input_tokens") or 0.0
    return row.source == _PERFORMANCE_LAB and _LEAST_SHARE_GPT < prompt < _MOST_SHARE_GPT


_LEAST_SHARE_GPT, _MOST_SHARE_GPT = 200.0, 400.0

_LATENCY_PAGE: Final = re.compile(r"-latency\.md\b")
_RATES: Final = (1.0, 4.0, 8.0, 16.0)
_ONE_A_SECOND: Final = ((32_000.0, 100.0), (1_000.0, 2_000.0))
"""Prompt and output tokens of its profiles of long prompts and of long answers."""


def arrivals_per_second(row: MeasuredRow, run: Mapping[str, MeasuredRow]) -> float | None:
    """Returns the requests per second that a source sends at a constant rate, or None.

    GPUStack's later pages use guidellm at a constant rate (their benchmark profiles): long prompts and long
    answers at one a second, the pages of latency at 1, 4, 8 or 16. A row does not state its rate, so it is
    the one that it completed. Their rows print the largest number of concurrent requests.
    """
    peak = row.batch.get("concurrency") or 0.0
    if (
        row.source != _PERFORMANCE_LAB
        or row.text.get("engine_version")
        or peak >= row.batch.get("requests", 0)
    ):
        return None
    prompt, outputs = (row.length.get(name) or 0.0 for name in ("input_tokens", "output_tokens"))
    if any(0.0 <= prompt - most < _TEMPLATE and outputs == least for most, least in _ONE_A_SECOND):
        return 1.0
    tokens = run.get("output_tokens_per_s")
    if tokens is None or not outputs or not _LATENCY_PAGE.search(row.text.get("source_ref", "")):
        return None
    return min(_RATES, key=lambda rate: abs(math.log(rate * outputs / tokens.value)))


_TEMPLATE: Final = 64.0
"""Tokens that a chat template may add to a prompt."""


def rounds_of_requests(row: MeasuredRow) -> int | None:
    """Returns the total requests divided by the concurrency, if a source sends them all at the start.

    InferenceX sends ten rounds. The other sweeps of the silicon sample do not state it; ten is the usual
    value in scripts of their client (--request-count).
    """
    return 10 if is_sweep_of_recipes(row) or row.source == _SWEEPS else None


_PROMPTS: Final[Mapping[str, tuple[int, ...]]] = {
    "task lm-arena-chat": (300, 100, 1000),
    "task gpqa": (300, 200, 600),
    "task sourcegraph-fim": (2000, 500, 6000),
    "task image-chat": (2000, 700, 3500),
    "task video-chat": (4000, 1500, 10000),
}
"""Prompt tokens of data sets, the likeliest first. Chat and exam questions are short; pictures take one to
some thousand tokens, clips several thousand: the middle is about what the mean interval between tokens of
those rows has beyond the median."""


def likely_prompts(row: MeasuredRow) -> tuple[int, ...]:
    """Returns the tokens of a prompt for a row that names the data set only, the likeliest first."""
    task = mlperf.get_task(row)
    if task:
        return (task.prompt_tokens,)
    notes = row.text.get("notes", "")
    return next((tokens for name, tokens in _PROMPTS.items() if name in notes), ())


_PICTURES: Final = ("task image-chat", "task video-chat")


def has_pictures(row: MeasuredRow) -> bool:
    """Returns true if requests carry pictures or clips.

    The number of their tokens is not stated, and the device waits for a host that decodes them.
    """
    notes = row.text.get("notes", "")
    return any(name in notes for name in _PICTURES)


def likely_output(row: MeasuredRow) -> int:
    """Returns the generated tokens of a request for a row that names the data set only."""
    task = mlperf.get_task(row)
    return task.output_tokens if task else 1


_PERFORMANCE_TABLES: Final = "TensorRT-LLM perf overview"
_WITH_EXPERTS: Final = ("deepseek-", "gpt-oss-", "llama-4-", "qwen3-30b-a3b", "qwen3-235b-a22b")


def spreads_attention(row: MeasuredRow) -> bool:
    """Returns true if the devices of a group share requests instead of heads, contrary to the table.

    The recipes behind NVIDIA's tables run every model with experts with ``enable_attention_dp``
    (perf-overview.md, running the benchmark).
    """
    return row.source == _PERFORMANCE_TABLES and row.model_id.startswith(_WITH_EXPERTS)


def is_packed_by_vendor(row: MeasuredRow) -> bool:
    """Returns true if FP8 weights are NVIDIA's, with a scale for each matrix, and not the maker's."""
    return row.source == _PERFORMANCE_TABLES and not row.model_id.startswith("deepseek-")


_VERSION: Final = re.compile(r"v?(\d+\.\d+(?:\.\w+)*)")
_NAMED_VERSION: Final = re.compile(r"\bvLLM (\d+\.\d+\.\d+)")
"""Version behind the name of the engine, as submissions to MLPerf print it."""
_DYNAMO: Final = re.compile(r"0\.[78]\.\d+\.post\d+")
_DYNAMO_ENGINE: Final = "1.2.0rc6"
_RELEASES: Final = {
    ("ML.ENERGY leaderboard", "vllm"): "0.11.1",
    ("TensorRT-LLM perf overview", "tensorrt-llm"): "1.1.0",
    ("Azure AI benchmarking guide", "tensorrt-llm"): "0.13.0",
    ("MLPerf Inference v4.1", "tensorrt-llm"): "0.12.0",
    ("MLPerf Inference v4.1 Power", "tensorrt-llm"): "0.12.0",
    ("MLPerf Inference v5.1", "tensorrt-llm"): "1.0.0",
}
"""Releases of the month of tables that print none: ML.ENERGY's third version (end of 2025), the overview of
TensorRT-LLM's PyTorch backend with RTX PRO 6000 (autumn 2025), Azure's guide (September 2024), MLPerf v4.1
and v5.1 (submissions of July 2024 and 2025)."""


def release(row: MeasuredRow) -> str | None:
    """Returns the release of the engine: as stated, else that of the month of the source.

    Disaggregated rows of TensorRT-LLM print the version of Dynamo, whose 0.7 and 0.8 carry 1.2.0rc.
    """
    name, text = engine(row), row.text.get("engine_version", "").strip()
    if name is None:
        return None
    known = _RELEASES.get((row.source, name))
    if known:
        return known
    if name == "tensorrt-llm" and _DYNAMO.fullmatch(text):
        return _DYNAMO_ENGINE
    match = _VERSION.match(text) or _NAMED_VERSION.search(row.text.get("engine", ""))
    return match[1] if match else None


_CONTRADICTED: Final = frozenset(
    {
        ("GPUStack performance lab", "qwen3.5-9b", "tpot_median"),
        ("MLPerf Inference v5.1", "llama-3.1-8b", "samples_per_s"),
    }
)


def is_contradicted(row: MeasuredRow) -> bool:
    """Returns true if the rates of its own runs, or the peak of its devices, contradict a figure.

    512 requests at 5,140 tokens a second have 100 milliseconds from token to token, but 4 are printed: the
    tokens of a stream came in bursts. Interactive results of Llama 3.1 8B are named samples, of which each
    would take 40 times the FLOPs of the devices: they are tokens.
    """
    return (row.source, row.model_id, row.metric) in _CONTRADICTED
