"""Expensive requests by operation, from which the search for the most expensive ones starts."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from service.app.examples import EXAMPLES
from service.resolve.form_fields import TRAINING, WORKLOAD

Body = dict[str, Any]

_ZONE = "America/Los_Angeles"
_ALL_HOURS = [{"name": "all", "tiers": [{"price": "10.5"}]}]
_EARLY, _LATE = {"from_time": "12:00", "to_time": "18:00"}, {"from_time": "18:00", "to_time": "12:00"}
_BY_HOURS = [
    {"name": "on", "tiers": [{"price": "0.3"}], "windows": [_EARLY]},
    {"name": "off", "tiers": [{"price": "0.1"}], "windows": [_LATE]},
]
_HOURS = [0.1 + hour % 24 / 100 for hour in range(8760)]
_TOKENS = 2 * 10**12
_MEMBERS, _VALUES, _BYTES = 29_000, 98_000, 8 * 10**6
"""Just below the size limit of a body."""
_LINE = 10**6
"""Characters of a line of a log."""


def _minutes(first: int, last: int) -> Body:
    return {
        "from_time": f"{first // 60:02}:{first % 60:02}",
        "to_time": f"{last // 60:02}:{last % 60:02}",
    }


def _terms(charges: list[Body], **members: Any) -> Body:  # noqa: ANN401
    revisions = [{"effective_from": "2000-01-01", "charges": charges}]
    return {"currency_code": "USD", "time_zone": _ZONE, "revisions": revisions, **members}


def _demands(count: int, **members: Any) -> list[Body]:  # noqa: ANN401
    return [{"kind": "demand", "name": f"d{i}", "periods": _ALL_HOURS, **members} for i in range(count)]


def _ratchets(count: int, months: int, *, salt: float = 0.0) -> Body:
    shares = [[0.5 + each / 1000 + salt] * 12 for each in range(count)]
    return {"ratchets": [{"preceding_months": months, "share_by_billing_month": share} for share in shares]}


_ORDINARY = [{"kind": "energy", "name": "e", "periods": _BY_HOURS}, *_demands(1)]
_PLAIN = _terms(_ORDINARY)
_RATCHETED = _terms([_ORDINARY[0], *_demands(1, billing_demand=_ratchets(1, 11))])


def _load(years: int = 1, minutes: int = 15) -> Body:
    times = {"starts_at": "2025-01-01T00:00", "ends_at": f"{2025 + years}-01-01T00:00"}
    added = [{"kw": 50, "from_time": "10:00", "to_time": "17:00"}]
    return {"kind": "rule", **times, "interval_minutes": minutes, "base_kw": 100, "add": added}


def _site(terms: Body = _PLAIN, *, hourly: bool = False, **members: Any) -> Body:  # noqa: ANN401
    carbon: Body = {"carbon_intensity_kg_co2e_per_kwh": 0.4}
    if hourly:
        series = {"kind": "hours_of_year", "time_zone": "America/New_York", "kg_co2e_per_kwh": _HOURS}
        carbon = {"carbon_intensity_series": series}
    return {"pue": 1.2, "time_zone": _ZONE, "electricity": {"tariff": terms}, **carbon, **members}


_BASELINE: Body = {"baseline_load": {"kind": "constant", "kw": 500}}
_PAUSES = {"load_profile": {"maintenance": {"every_seconds": 1_000_000, "duration_seconds": 3600}}}


def _run(tokens: float = _TOKENS, **members: Any) -> Body:  # noqa: ANN401
    """A modelled training run; 2e12 tokens take some five weeks."""
    device = {"source": "catalog", "id": "h100-sxm"}
    return {
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "cluster": {"accelerator": device, "accelerator_count": 64},
        "workload": {"kind": "training", "total_tokens": int(tokens), "sequence_length": 4096},
        "starts_at": "2026-01-03T00:00:00Z",
        **members,
    }


def _assumed(tokens: float, **members: Any) -> Body:  # noqa: ANN401
    """A run of a thousand devices whose efficiency is given; 2e12 tokens take three weeks."""
    asked = _run(tokens, **members)
    asked["cluster"] = {**asked["cluster"], "accelerator_count": 1000}
    model = {"source": "parameter_count", "parameter_count": 70 * 10**9}
    return {**asked, "model": model, "efficiency": {"source": "assumed", "utilization": 0.5}}


def _asked(model: Body, **members: Any) -> Body:  # noqa: ANN401
    asked = _run(10**10, **members)
    del asked["starts_at"]
    return {**asked, "model": model}


def _architecture(*layers: Body) -> Body:
    return {"source": "architecture", "architecture": {"layers": list(layers)}}


def _repeated(kind: str, count: int = 2**31 - 1) -> Body:
    sizes: dict[str, Body] = {
        "normalization": {"size": 64},
        "linear": {"input_size": 64, "output_size": 64},
        "learned_vectors": {"purpose": "tokens", "size": 64},
        "embedding_table": {"size": 64, "rows": 8},
    }
    return _architecture({"kind": kind, **sizes[kind], "count": count})


def _latent(size: int) -> Body:
    ranks = {"query_rank": 64 + size, "key_value_rank": 64}
    heads = {"query_heads": 8, "plain_head_size": 64, "rotary_head_size": 32, "value_head_size": 64}
    return {"kind": "latent_attention", "hidden_size": 1024 + size, **ranks, **heads}


def _latents(count: int = 1000) -> Body:
    return _architecture(*(_latent(each) for each in range(count)))


def _written_layers() -> Body:
    """Ten thousand layers of a thousand sizes."""

    def block(first: int) -> Body:
        layers = [{"kind": "normalization", "size": 64 + (first + each) % 1000} for each in range(100)]
        return {"kind": "block", "layers": layers}

    return _architecture(*(block(100 * each) for each in range(100)))


def _config(layers: int = 32, **members: Any) -> Body:  # noqa: ANN401
    named = EXAMPLES["import_model"]["config"]
    return {**named, "num_hidden_layers": layers, **members}


def _quantized(patterns: list[str]) -> Body:
    method = {"quant_method": "fp8", "ignore": patterns, "activation_scheme": "dynamic"}
    return {"source": "huggingface_config", "config": _config(quantization_config=method)}


def _named_modules() -> Body:
    names = [f"model.layers.{each % 400}.mlp.down_proj.{each}" for each in range(5000)]
    method = {"quant_method": "fp8", "ignore": names, "activation_scheme": "dynamic"}
    return {"source": "huggingface_config", "config": _config(400, quantization_config=method)}


def _models() -> Iterator[tuple[str, Body]]:
    for kind in ("normalization", "linear", "learned_vectors", "embedding_table"):
        yield f"{kind} 2^31 times", _repeated(kind)
    yield "a million linear layers", _repeated("linear", 10**6)
    yield "1,000 latent-attention layers", _latents()
    yield "10,000 written layers", _written_layers()
    yield "5,000 module names, 400 layers", _named_modules()
    yield ".? eighteen times", _quantized(["re:" + ".?" * 18 + "!"])
    yield "four .*", _quantized(["re:.*.*.*.*!"])
    yield "5,000 globs", _quantized([f"*{each}*a*b*" for each in range(5000)])


def _served(requests: int, **members: Any) -> Body:  # noqa: ANN401
    asked = _asked({"source": "catalog", "id": "llama-3.1-8b"})
    workload = {"kind": "inference", "input_tokens": 1000, "output_tokens": 300}
    asked["workload"] = {**workload, "request_rate_per_second": 50.0, **members}
    return {**asked, "solver": {"kind": "simulated", "requests": requests}}


def _estimates() -> Iterator[tuple[str, str, Body]]:
    for name, model in _models():
        for operation in ("estimate_memory", "estimate_throughput", "estimate_cost", "estimate_utility_bill"):
            yield operation, name, _for(operation, _asked(model))
        for operation in ("memory", "throughput", "cost", "utility_bill"):
            asked = _for(f"estimate_{operation}", _asked(model))
            yield f"estimate_{operation}_batch", f"as many as fit of {name}", _batch(asked)
        yield "create_quote", name, _quote("memory", _asked(model))
        yield from _others(name, model)
        if model["source"] == "huggingface_config":
            imported = {**EXAMPLES["import_model"], "config": model["config"]}
            yield "import_model", name, imported
        else:
            yield "create_model", name, {**EXAMPLES["create_model"], "architecture": model["architecture"]}
            yield "update_model", name, {"architecture": model["architecture"]}
    yield "estimate_throughput", "200,000 simulated requests", _served(200_000)
    yield "estimate_throughput", "a scaling curve", _asked(_latents(), scaling={})
    curve = _asked({"source": "catalog", "id": "llama-3.1-8b"}, scaling={})
    yield "estimate_throughput_batch", "500 scaling curves", {"requests": [curve] * 500}


def _others(name: str, model: Body) -> Iterator[tuple[str, str, Body]]:
    """Questions with many runs of one model."""
    for operation in ("estimate_cost_export", "estimate_utility_bill_export", "create_plan"):
        yield operation, name, {**EXAMPLES[operation], "model": model}
    plan = EXAMPLES["create_plan"]
    yield "create_plan", f"{name}, every layout", {**plan, "model": model, "search": {}}
    served = {**EXAMPLES["estimate_throughput_frontier"], "model": model}
    yield "estimate_throughput_frontier", name, served
    asked = _for("estimate_cost", _asked(model))
    compared = {"baseline": asked, "alternatives": [asked] * min(8, len(_batch(asked)["requests"]))}
    yield "estimate_cost_comparison", name, compared
    fleet = EXAMPLES["plan_fleet"]
    workloads = [{**each, "model": model} for each in fleet["workloads"]]
    yield "plan_fleet", f"two workloads of {name}", {**fleet, "workloads": workloads}


def _batch(asked: Body) -> Body:
    """Returns as many copies of a question as a body may hold."""
    raw = json.dumps(asked)
    fitting = (_MEMBERS // raw.count(":"), _VALUES // (raw.count(",") + 1), _BYTES // len(raw), 500)
    return {"requests": [asked] * max(1, min(fitting))}


def _quote(operation: str, asked: Body) -> Body:
    return {**EXAMPLES["create_quote"], "operation": operation, "request": asked}


def _for(operation: str, asked: Body) -> Body:
    example = EXAMPLES[operation]
    return {**asked, **{name: example[name] for name in ("rental", "purchase", "site") if name in example}}


def _window(first: str, last: str, step: int) -> Body:
    return {
        "earliest_start_at": f"{first}T00:00:00Z",
        "latest_start_at": f"{last}T00:00:00Z",
        "step_minutes": step,
    }


def _bills() -> Iterator[tuple[str, str, Body]]:
    plain, hourly = _site(), _site(hourly=True)
    stored = _site(_terms([*_demands(50, billing_demand=_ratchets(6, 120))]), **_BASELINE)
    for name, asked in (
        ("50 charges of 6 ratchets, a baseline", _run(site=stored)),
        ("28 years, hourly carbon, a baseline", _assumed(1e15, site={**hourly, **_BASELINE})),
        ("39 years by 5 minutes", _assumed(1.4e15, site=plain, load_profile={"interval_minutes": 5})),
    ):
        yield "estimate_utility_bill", name, asked
        yield "estimate_utility_bill_export", name, {**EXAMPLES["estimate_utility_bill_export"], **asked}
        yield "create_quote", name, _quote("utility-bill", asked)
    for name, site in (("a tariff", plain), ("hourly carbon", hourly)):
        asked = _run(1e12, site=site)
        yield "estimate_utility_bill_batch", f"as many as fit with {name}", _batch(asked)
        yield "estimate_utility_bill_batch", f"8 with {name}", {"requests": [asked] * 8}
    year, daily = ("2026-01-03", "2026-04-10"), 1440
    for name, site, tokens, window, others in (
        ("17 years with pauses, 98 daily starts", plain, 2.4e14, _window(*year, daily), _PAUSES),
        ("a ratchet of 11 months", _site(_RATCHETED), 1e12, _window("2026-01-03", "2026-02-23", 15), {}),
        ("a ratchet and a baseline", _site(_RATCHETED, **_BASELINE), 1e12, _window(*year, 30), {}),
        ("8 years, hourly carbon", hourly, 1.2e14, _window("2026-01-03", "2026-12-03", daily), _PAUSES),
        ("4,600 starts, hourly carbon", hourly, 2e12, _window("2026-01-03", "2026-02-20", 15), _PAUSES),
    ):
        yield "estimate_utility_bill_shift", name, _run(tokens, site=site, window=window, **others)
    caps = {"power_caps_watts": [400 + 10 * each for each in range(20)]}
    for years, tokens in ((12, 1.6e14), (17, 2.4e14)):
        capped = _run(tokens, site=plain, **caps)
        yield "estimate_utility_bill_power_cap", f"20 caps, {years} years", capped
    for years, tokens in ((2, 3.5e13), (17, 2.4e14)):
        for count, name, place in ((20, "a tariff", plain), (11, "hourly carbon", hourly)):
            places = [{"name": f"s{each}", "site": {**place, **_BASELINE}} for each in range(count)]
            compared = _run(tokens, sites=places)
            yield "estimate_utility_bill_comparison", f"{count} sites, {name}, {years} years", compared


def _tariffs() -> Iterator[tuple[str, Body, Body]]:
    """Names, terms and loads."""
    twice = _load(2, 5)
    same, others = _ratchets(24, 120), [_ratchets(24, 120, salt=each / 1e6) for each in range(200)]
    yield "200 charges of 24 ratchets of 120 months", _terms(_demands(200, billing_demand=same)), _load()
    distinct = [{**each, "billing_demand": others[i]} for i, each in enumerate(_demands(200))]
    yield "200 charges of 24 different ratchets", _terms(distinct), _load(2, 60)
    for count, load in ((200, _load()), (160, twice)):
        peaks = [
            {**each, "window_minutes": 30, "rolling": True, "peaks": 2 + i, "on_distinct_days": i % 3 == 0}
            for i, each in enumerate(_demands(count))
        ]
        yield f"{count} rolling peaks", _terms(peaks), load
    hours = {"price": "1", "hours_of_year": list(range(1, 1001))}
    coincident = [{"kind": "coincident_peak", "name": f"c{i}", "sets": [hours] * 24} for i in range(4)]
    yield "96,000 coincident hours", _terms(coincident), twice
    charges = [{"kind": "energy", "name": f"e{i}", "periods": _BY_HOURS} for i in range(200)]
    yield "200 energy charges", _terms(charges), twice
    for count in (30, 200):
        shifted = [
            {"name": "x", "tiers": [{"price": "1"}], "windows": [_minutes(i, 700 + i)]} for i in range(count)
        ]
        kinds = [{"kind": "energy", "name": f"e{i}", "periods": [each]} for i, each in enumerate(shifted)]
        yield f"{count} energy charges of different hours", _terms(kinds), twice
    days = [f"{2000 + i // 336:04}-{1 + i // 28 % 12:02}-{1 + i % 28:02}" for i in range(2000)]
    windows = [{**_minutes(i, i + 1), "holidays": "included", "months": [1 + i % 12]} for i in range(500)]
    period = {"name": "x", "tiers": [{"price": "1"}], "windows": windows}
    windowed = [{"kind": "energy", "name": "e", "periods": [period]}]
    yield "500 windows, 2,000 holidays", _terms(windowed, holidays=days), _load()
    tiers = [{"price": "1", "limit": 0.001 * (k + 1)} for k in range(49)]
    tiered = [
        {"name": f"x{p}", "tiers": [*tiers, {"price": "1"}], "windows": [_minutes(14 * p, 14 * p + 14)]}
        for p in range(100)
    ]
    for count in (40, 100):
        laddered = [{"kind": "energy", "name": "e", "periods": tiered[:count]}]
        yield f"{count} ladders of 50 tiers", _terms(laddered), _load(2, 60)
    riders = [{"kind": "percentage", "name": f"p{c}", "percent": "1"} for c in range(199)]
    yield "199 riders on 5,000 tiers", _terms([*laddered, *riders]), _load(2, 60)
    marked = [
        {"name": f"x{p}", "tiers": [{"price": "1"}], "windows": [_minutes(p * 14, p * 14 + 14)]}
        for p in range(100)
    ]
    used = [{"month": 1 + i % 12, "period": f"x{i // 12}", "value": 5} for i in range(1200)]
    peaks_kw = [{"month": month, "value": 9} for month in range(1, 13)]
    told = {"kind": "determinants", "year": 2025, "energy_kwh": used, "peak_kw": peaks_kw}
    for count in (40, 200):
        repeated = [{"kind": "energy", "name": f"e{c}", "periods": marked} for c in range(count)]
        yield f"determinants of 100 periods, {count} charges", _terms(repeated), told
    many = [{"month": 1 + i % 12, "period": f"x{i // 12}", "value": 5} for i in range(2000)]
    yield "determinants of 4,000 periods", _PLAIN, {**told, "energy_kwh": many, "peak_kw": many}
    series = {"kind": "series", "starts_at": "2025-01-01T00:00", "interval_minutes": 5, "kw": [1.0] * 90_000}
    yield "a load of 90,000 values", _PLAIN, series


def _billed() -> Iterator[tuple[str, str, Body]]:
    for name, terms, load in _tariffs():
        yield "bill_tariff", name, {"tariff": {"source": "terms", "terms": terms}, "load": load}
        yield "create_tariff", name, {**EXAMPLES["create_tariff"], **terms}
        yield "update_tariff", name, terms


_LOGS = {
    "engine_log": ("(Worker_TP0 pid=1) INFO 01-01 00:00:00 [", "Engine 000: Avg prompt throughput: 1.0 "),
    "training_log": ("[rank0]:step:  1  loss: 1 memory: 1GiB(1%) tps: ", "iteration 1/ 2 | elapsed time "),
    "dcgm_dmon": ("#Entity ID POWER ", "GPU 0 100.0 "),
    "dcgm_exporter": ("# HELP a b\n", 'DCGM_FI_DEV_POWER_USAGE{gpu="0",'),
    "nccl_tests": ("# out-of-place ", " 8 2 float sum -1 1.0 1.0 1.0 0 "),
    "nvbandwidth": ("Running host_to_device_memcpy_ce.\n", " 0 1.0 1.0 "),
    "llama_bench": ("| model | size |\n", "| llama 7B | 1.0 GiB |"),
    "aiperf_csv": ("Metric,avg,min,max\n", "Time to First Token (ms),1.0,"),
    "own_csv": ("metric,value,statistic\n", "time_per_output_token_seconds,0.0092,mean\n"),
    "nsight_compute": ('"ID","Kernel Name"\n', '"0","gemm",'),
    "vllm_bench": ('{"a": ', "["),
    "guidellm": ('{"a": ', '{"b":'),
}


def _evidence() -> Iterator[tuple[str, str, Body]]:
    for kind, parts in _LOGS.items():
        for which, part in zip(("head", "row"), parts, strict=True):
            for name, content in (
                (f"{kind}: a {which} for 1 MB", part * (_LINE // len(part))),
                (f"{kind}: a {which} and 1 MB of digits", part + "1" * _LINE),
                (f"{kind}: lines of a {which}", (part.rstrip("\n") + "\n") * 40_000),
            ):
                said = {**EXAMPLES["import_evidence"], "format": kind, "content": content}
                yield "import_evidence", name, said
    table = EXAMPLES["import_evidence"]
    head, row, _ = table["content"].split("\n", 2)
    cells = row.rpartition(",16,")
    content = head + "\n" + "".join(f"{cells[0]},{each},{cells[2]}\n" for each in range(1, 201))
    for name, model in (("the example's model", table["model"]), ("1,000 latent layers", _latents())):
        said = {**table, "content": content, "model": model}
        yield "import_evidence", f"own_csv: 200 questions of {name}", said


def _plans() -> Iterator[tuple[str, str, Body]]:
    plan = EXAMPLES["create_plan"]
    for devices in (4096, 10**6):
        rented = [{**plan["rented"][0], "cluster": _cluster(devices)}]
        yield "create_plan", f"{devices:,} devices, every layout", {**plan, "search": {}, "rented": rented}
    fleet = EXAMPLES["plan_fleet"]
    many = [{**fleet["workloads"][i % 2], "name": f"w{i}"} for i in range(40)]
    yield "plan_fleet", "40 workloads", {**fleet, "workloads": many}
    every = [{name: each[name] for name in each if name not in ("training", "serving")} for each in many]
    yield "plan_fleet", "40 workloads, every layout", {**fleet, "workloads": every}
    apart = [{**each, "priority": place + 1} for place, each in enumerate(many)]
    for place, each in enumerate(apart):
        kept, rate = each["workload"], {"request_rate_per_second": 2.0 + place}
        more = {"total_tokens": 10**10 + place} if kept["kind"] == "training" else rate
        each["workload"] = {**kept, **more}
    halls = [
        {**fleet["owned"][0], "name": f"hall {place}", "cluster": _cluster(64 * place)}
        for place in range(1, 5)
    ]
    yield "plan_fleet", "40 that differ, on four pools", {**fleet, "workloads": apart, "owned": halls}
    front = {**EXAMPLES["estimate_throughput_frontier"]}
    yield (
        "estimate_throughput_frontier",
        "4,096 numbers of requests",
        {
            **front,
            "search": {"requests_per_replica": list(range(1, 4097))},
        },
    )


def _cluster(devices: int) -> Body:
    return {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": devices}


def _tables() -> Iterator[tuple[str, str, Body]]:
    grid = EXAMPLES["import_grid"]
    yield "import_grid", "400,000 lines", {**grid, "content": grid["content"] + "1,1,0.94\n" * 400_000}
    for name in ("import_offers", "import_actuals"):
        example = EXAMPLES[name]
        head, _, rest = example["content"].partition("\n")
        for count in (1000, 3 * _LINE // len(rest)):
            content = head + "\n" + rest * count
            yield name, f"{count:,} times the example's rows", {**example, "content": content}
    prices = EXAMPLES["import_token_prices"]
    row = prices["content"].partition(": ")[2].partition("}")[0] + "}"
    for count in (1000, 10_000):
        listed = ",".join(f'"example/{each}": {row}' for each in range(count))
        yield "import_token_prices", f"{count:,} models", {**prices, "content": "{" + listed + "}"}
    rate = EXAMPLES["import_tariff"]
    ladder = [{"rate": 0.09, "unit": "kWh", "max": each + 1} for each in range(20)]
    yield (
        "import_tariff",
        "900 periods of 20 tiers",
        {
            **rate,
            "urdb": {**rate["urdb"], "energyratestructure": [ladder] * 900},
        },
    )


def _results() -> Iterator[tuple[str, str, Body]]:
    """Results without any of their members, at the limits of an operation that takes less than others."""
    yield "report_benchmark_result", "10,900 lists", {"content": [[]] * 10_900}
    yield "report_benchmark_result", "1 MB of text", {"content": "x" * 10**6}


def large(example: Body) -> Iterator[tuple[str, bytes]]:
    """Bodies of any operation that are large, or wrong many times."""
    members = ",".join(f'"x{each:05}":1' for each in range(29_000))
    said = json.dumps(example)[1:-1]
    yield "29,000 unknown members", b"{" + members.encode() + b"}"
    yield "the example and 29,000 unknown members", ("{" + said + "," * bool(said) + members + "}").encode()
    yield "99,000 numbers", b'{"requests":[' + b"1," * 98_990 + b"1]}"
    yield "49,000 lists", b'{"content":[' + b"[]," * 49_000 + b"[]]}"
    yield "900 lists in each other", b'{"model":' + b"[" * 900 + b"]" * 900 + b"}"
    yield "8 MB of text", b'{"id":"' + b"x" * (8 * 2**20 - 20) + b'"}'


_TRAINED: Final = {WORKLOAD: TRAINING, "global_batch_size": "2048", "total_tokens_billions": "2000"}
_BILLED: Final = {
    "tariff": "pge-e20-primary-2018",
    "time_zone": _ZONE,
    "price_per_kwh": "",
    "grid": "egrid-us",
}
_QUESTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "the question at first": {},
    "a mixture of experts, trained on 2,048": {
        **_TRAINED,
        "model": "deepseek-v3",
        "accelerator_count": "2048",
    },
    "405B, trained on 1,000": {**_TRAINED, "model": "llama-3.1-405b", "accelerator_count": "1000"},
    "the same under a tariff": {
        **_TRAINED,
        **_BILLED,
        "model": "llama-3.1-405b",
        "accelerator_count": "1000",
        "starts_on": "2026-01-03",
    },
    "a mixture of experts, served on 64": {
        "model": "deepseek-v3",
        "accelerator": "h200-sxm",
        "accelerator_count": "64",
        "requests_per_second": "20",
        "first_token_seconds": "1",
        "output_token_milliseconds": "50",
    },
    "ten years of a service under a tariff": {
        **_BILLED,
        "accelerator_count": "8",
        "days": "3650",
        "starts_on": "2026-01-03",
    },
}
"""Fields of the form of questions that take long."""


def pages() -> dict[str, list[tuple[str, str]]]:
    """Named addresses of the pages that answer the question of their address."""
    queries = [(name, urlencode(fields)) for name, fields in _QUESTIONS.items()]
    return {path: [(name, f"{path}?{query}") for name, query in queries] for path in ("/ask", "/ask/charts")}


def seeds() -> dict[str, list[tuple[str, bytes]]]:
    """Named bodies of every operation that takes one; its example comes first."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for operation, example in EXAMPLES.items():
        found[operation] = [("the example", json.dumps(example).encode())]
    for make in (_estimates, _bills, _billed, _evidence, _plans, _tables, _results):
        for operation, name, body in make():
            found[operation].append((name, json.dumps(body).encode()))
    return found
