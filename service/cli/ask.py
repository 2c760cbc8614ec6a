"""Short commands: fit, speed and cost of a model on hardware, and what is in the catalog.

Each of the first three sends the body of `POST /v1/estimates/summary` to a running service, or answers it
from the local catalog, and shows a part of the answer.
"""

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

import typer

from service.cli.plan import (
    KEY_VARIABLE,
    REFUSED,
    exit_when_refused,
    load_local_catalog,
    open_client,
    open_local_database,
    read_answer,
    to_refusal,
)

DOES_NOT_FIT: Final = 3
"""Exit status of an answer that says that the memory of a device is too small."""
_SUMMARY: Final = "/v1/estimates/summary"
_BINARY: Final = {"k": 1024, "m": 1024**2}
_DECIMAL: Final = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_NUMBER: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmbtKMBT]?)")

_OPTIONS: Final = {
    "input_tokens": "--input",
    "output_tokens": "--output",
    "context_tokens": "--context",
    "concurrency": "--concurrency",
    "weights": "--weights",
    "sequence_length": "--sequence",
    "total_tokens": "--tokens",
}
"""Options of one goal, by the members of the request that they fill."""

models = typer.Typer(no_args_is_help=True, help="Models of the catalog.")

_Model = Annotated[str, typer.Argument(help="Model by any of its names, such as qwen3-32b or a hub id.")]
_Hardware = Annotated[
    str, typer.Argument(help="COUNTxACCELERATOR, such as 2xl40s, or an instance type, such as p5.48xlarge.")
]
_Context = Annotated[
    str | None, typer.Option(help="Longest request in tokens; 32k is 32,768. Defaults to that of the model.")
]
_Prompt = Annotated[str | None, typer.Option("--input", help="Tokens of a usual prompt.")]
_Answer = Annotated[str | None, typer.Option("--output", help="Tokens of a usual answer.")]
_Concurrency = Annotated[int | None, typer.Option(min=1, help="Usual requests at a time.")]
_Weights = Annotated[
    str | None, typer.Option(help="Storage of the weights, such as fp8, int4, awq or q4_k_m.")
]
_Train = Annotated[
    str | None,
    typer.Option(help="Train instead of serving: full, lora or qlora.", metavar="full|lora|qlora"),
]
_Tokens = Annotated[str | None, typer.Option(help="Tokens of the whole training run; 1T is 1e12.")]
_Length = Annotated[str | None, typer.Option("--sequence", help="Tokens of a training sequence.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the answer of the API as JSON.")]
_Url = Annotated[
    str | None, typer.Option(help=f"Address of a running service; its key is read from {KEY_VARIABLE}.")
]


def fit(
    model: _Model,
    hardware: _Hardware,
    *,
    context: _Context = None,
    concurrency: _Concurrency = None,
    weights: _Weights = None,
    train: _Train = None,
    sequence: _Length = None,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """Say if a model fits on hardware, and how many requests of the full context it holds.

    The exit status is 3 if it does not fit.
    """
    longest = _read_tokens(context, "--context", _BINARY)
    serving = {"context_tokens": longest, "concurrency": concurrency, "weights": weights}
    goal = _build_goal(train, serving, _read_run(sequence, None))
    _answer({"model": model, "hardware": hardware, "goal": goal}, ("fit", "users"), as_json=as_json, url=url)


def speed(
    model: _Model,
    hardware: _Hardware,
    *,
    prompt: _Prompt = None,
    output: _Answer = None,
    concurrency: _Concurrency = None,
    weights: _Weights = None,
    train: _Train = None,
    sequence: _Length = None,
    tokens: _Tokens = None,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """Say how fast hardware serves or trains a model."""
    serving = _read_lengths(prompt, output) | {"concurrency": concurrency, "weights": weights}
    goal = _build_goal(train, serving, _read_run(sequence, tokens))
    _answer({"model": model, "hardware": hardware, "goal": goal}, ("speed",), as_json=as_json, url=url)


def cost(
    model: _Model,
    hardware: _Hardware,
    *,
    hours: Annotated[float | None, typer.Option(help="Hours of serving. Defaults to a month.")] = None,
    price: Annotated[
        str | None, typer.Option(help="Price of a device and hour in USD. Defaults to the cheapest offer.")
    ] = None,
    offer: Annotated[str | None, typer.Option(help="Offer of the catalog to rent at.")] = None,
    electricity: Annotated[
        str | None, typer.Option(help="Price of a kWh in USD, for the bill of a building.")
    ] = None,
    tariff: Annotated[str | None, typer.Option(help="Tariff of the catalog, for the same bill.")] = None,
    start: Annotated[
        str | None,
        typer.Option(help="First day, such as 2026-07-01, if prices of the tariff change in time."),
    ] = None,
    pue: Annotated[float | None, typer.Option(help="Energy of the building over that of the IT.")] = None,
    grid: Annotated[
        str | None,
        typer.Option(help="Place or grid for the emissions, such as virginia, frankfurt or eu-west-1."),
    ] = None,
    prompt: _Prompt = None,
    output: _Answer = None,
    concurrency: _Concurrency = None,
    weights: _Weights = None,
    train: _Train = None,
    sequence: _Length = None,
    tokens: _Tokens = None,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """Say what serving or training a model on hardware costs, and its bill of energy."""
    serving = _read_lengths(prompt, output) | {"concurrency": concurrency, "weights": weights}
    goal = _build_goal(train, serving, _read_run(sequence, tokens))
    rental = {"price_per_device_hour": _build_money(price), "offer_id": offer}
    paid = _drop_absent({"price_per_kwh": _build_money(electricity), "tariff_id": tariff})
    site = _drop_absent({"pue": pue, "grid_id": grid, "electricity": paid or None})
    body = {
        "model": model,
        "hardware": hardware,
        "goal": goal,
        "hours": hours,
        "rental": _drop_absent(rental) or None,
        "site": site or None,
        "starts_at": None if start is None else f"{start}T00:00:00Z",
    }
    _answer(_drop_absent(body), ("price", "bill"), as_json=as_json, url=url)


@models.command("search")
def search_models(
    words: Annotated[list[str], typer.Argument(help="Words of the name, in any case.")],
    *,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """List the models of the catalog whose names have all the words."""
    _list_rows(
        "models",
        " ".join(words),
        ("id", "name", "parameter_count", "hub_id", "license"),
        as_json=as_json,
        url=url,
    )


def gpus(
    words: Annotated[list[str] | None, typer.Argument(help="Words of the name, in any case.")] = None,
    *,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """List the accelerators of the catalog, with memory, bandwidth and power."""
    columns = (
        "id",
        "name",
        "memory_label_gb",
        "memory_bandwidth_bytes_per_second",
        "power_limit_watts",
    )
    _list_rows("accelerators", " ".join(words or ()), columns, as_json=as_json, url=url)


def _drop_absent(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _read_tokens(text: str | None, option: str, units: Mapping[str, int]) -> int | None:
    """Returns a number of tokens such as 4096, 32k or 1.5T."""
    if text is None:
        return None
    match = _NUMBER.fullmatch(text)
    unit = 1 if match is None or not match[2] else units.get(match[2].lower())
    count = None if match is None or unit is None else Decimal(match[1]) * unit
    if count is None or count != int(count) or count < 1:
        raise typer.BadParameter(f"{option} takes a number of tokens, such as 4096 or 32k")
    return int(count)


def _read_lengths(prompt: str | None, output: str | None) -> dict[str, Any]:
    return {
        "input_tokens": _read_tokens(prompt, "--input", _BINARY),
        "output_tokens": _read_tokens(output, "--output", _BINARY),
    }


def _read_run(sequence: str | None, tokens: str | None) -> dict[str, Any]:
    return {
        "sequence_length": _read_tokens(sequence, "--sequence", _BINARY),
        "total_tokens": _read_tokens(tokens, "--tokens", _DECIMAL),
    }


def _build_goal(train: str | None, serving: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the goal of a summary. Options of the other goal are refused."""
    if train is None:
        given, other, kind = serving, training, {"kind": "serve"}
    else:
        given, other, kind = training, serving, {"kind": "train", "adaptation": train}
    if unused := _drop_absent(other):
        options = ", ".join(sorted(_OPTIONS[name] for name in unused))
        hint = "training only: add --train full, lora or qlora" if train is None else "serving only"
        raise typer.BadParameter(f"{options}: for {hint}")
    return kind | _drop_absent(given)


def _build_money(amount: str | None) -> dict[str, str] | None:
    return None if amount is None else {"amount": amount, "currency_code": "USD"}


def _answer(body: Mapping[str, Any], sections: Iterable[str], *, as_json: bool, url: str | None) -> None:
    """Asks for a summary, shows some sections of it, and ends with the status of the answer."""
    from service.cli.terminal import print_summary  # noqa: PLC0415  # the other commands start faster without it

    with exit_when_refused():
        answer = _ask_service(url, body) if url else _answer_locally(body)
    if as_json:
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        print_summary(answer, sections)
    raise typer.Exit(DOES_NOT_FIT if answer["fit"].get("fits") is False else 0)


def _ask_service(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    with open_client(url) as client:
        return read_answer(client.post(_SUMMARY, content=json.dumps(body).encode()), "fit")


def _answer_locally(body: Mapping[str, Any]) -> dict[str, Any]:
    """Answers from the local catalog, with the shapes of the API."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    from service.estimates.service import answer_question  # noqa: PLC0415
    from service.estimates.summary import estimate_summary  # noqa: PLC0415
    from service.kit.http.problems import Problem  # noqa: PLC0415
    from service.kit.http.shapes import load_shape  # noqa: PLC0415
    from service.kit.http.validation import build_body_problem  # noqa: PLC0415
    from service.schemas.summary import SummaryEstimate, SummaryRequest  # noqa: PLC0415

    text = json.dumps(body).encode()
    try:
        try:
            question = SummaryRequest.model_validate_json(text)
        except ValidationError as error:
            raise build_body_problem(error, text, load_shape(SummaryRequest)) from error
        found = answer_question(estimate_summary, question, load_local_catalog())
    except Problem as problem:
        raise to_refusal(problem) from problem
    told: dict[str, Any] = TypeAdapter(SummaryEstimate).dump_python(found, mode="json")
    return told


def _list_rows(
    resource: str, words: str, columns: tuple[str, ...], *, as_json: bool, url: str | None
) -> None:
    """Lists rows of the catalog as a table, or as the items of the API."""
    from service.cli.terminal import print_rows  # noqa: PLC0415

    with exit_when_refused():
        rows = _fetch_rows(url, resource, words) if url else _search_rows(resource, words)
    if as_json:
        typer.echo(json.dumps({"items": rows}, indent=2, ensure_ascii=False))
    else:
        print_rows(rows, columns)
    raise typer.Exit(0 if rows else REFUSED)


def _search_rows(resource: str, words: str) -> list[dict[str, Any]]:
    """Returns the rows of the local catalog that have the words."""
    from service.catalog.registry import RESOURCES  # noqa: PLC0415
    from service.catalog.service import search_documents  # noqa: PLC0415
    from service.kit.security.principals import DEFAULT_TENANT  # noqa: PLC0415

    database = open_local_database()
    if database is None:
        return search_documents(None, RESOURCES[resource], DEFAULT_TENANT, words)
    with database.open_reader() as session:
        return search_documents(session, RESOURCES[resource], DEFAULT_TENANT, words)


def _fetch_rows(url: str, resource: str, words: str) -> list[dict[str, Any]]:
    """Returns the rows that a running service finds, page by page."""
    rows: list[dict[str, Any]] = []
    asked = {"page_size": "100"} | ({"q": words} if words else {})
    with open_client(url) as client:
        while True:
            page = read_answer(client.get(f"/v1/{resource}", params=asked), "items")
            rows += page["items"]
            if not page["next_page_token"]:
                return rows
            asked["page_token"] = page["next_page_token"]
