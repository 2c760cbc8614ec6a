"""The `plan` command: searches for the best configuration, in this process or by a running service."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    import httpx
    from rich.progress import Progress, TaskID

    from service.kit.database.engine import Database
    from service.kit.http.problems import Problem
    from service.plans.service import PreparedSearch
    from service.plans.space import SearchOutcome, SearchPiece
    from service.resolve.catalog import CatalogView

KEY_VARIABLE: Final = "IRONLAW_API_KEY"
"""Environment variable of the API key; an argument would be visible to everyone on the host."""
REFUSED: Final = 1
NOTHING_LEFT: Final = 3
CANCELLED: Final = 130
"""Exit status after an interrupt, as shells define it."""
_FEW_CANDIDATES: Final = 50_000
"""Most candidates that are searched faster in one process than in several."""
_POLL_SECONDS: Final = 0.25
_TIMEOUT_SECONDS: Final = 60.0
"""Timeout of a request; a small search is answered while the caller waits."""

ReportProgress = Callable[[int, int], None]
"""Is called with the number of decided candidates and their total."""


class PlanRefusedError(Exception):
    """The question was refused; each line is shown to the user."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


@contextmanager
def exit_when_refused() -> Iterator[None]:
    """Shows the lines of a refusal on standard error, and exits with 1."""
    try:
        yield
    except PlanRefusedError as refused:
        for line in refused.lines:
            typer.echo(line, err=True)
        raise typer.Exit(REFUSED) from None


def plan(
    file: Annotated[typer.FileBinaryRead, typer.Argument(help="Question as JSON; - is standard input.")],
    *,
    url: Annotated[
        str | None, typer.Option(help=f"Address of a running service; its key is read from {KEY_VARIABLE}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. Defaults to the number of cores.")
    ] = None,
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            help="Configuration in use to rank with the rest, as TOOL=FILE of megatron_lm, deepspeed,  "
            "torchtitan, vllm or sglang; repeatable."
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="Devices of --configuration, as ACCELERATOR:COUNT. Defaults to the only supply."),
    ] = None,
) -> None:
    """Find the best configuration for a workload: its devices, its layout and its cost.

    Exits with 1 if the question is refused, and with 3 if no configuration satisfies the constraints.
    """
    from service.cli.plan_answer import print_plan  # noqa: PLC0415  # the other commands start faster without it

    try:
        with exit_when_refused():
            text = _add_configurations(file.read(), configuration or [], on)
            with _open_progress() as advance:
                answer = ask_service(url, text, advance) if url else search_locally(text, processes, advance)
    except KeyboardInterrupt:
        typer.echo("ironlaw: cancelled", err=True)
        raise typer.Exit(CANCELLED) from None
    if as_json:
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        print_plan(answer)
    raise typer.Exit(0 if answer["rows"] else NOTHING_LEFT)


@contextmanager
def _open_progress() -> Iterator[ReportProgress]:
    """Shows a progress bar on standard error while candidates are decided, if that is a terminal."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} candidates"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: list[TaskID] = []
        yield lambda done, total: _advance_bar(progress, tasks, done, total)


def _advance_bar(progress: "Progress", tasks: "list[TaskID]", done: int, total: int) -> None:
    if not tasks:
        tasks.append(progress.add_task("", total=total))
    progress.update(tasks[0], completed=done, total=total)


def _add_configurations(text: bytes, given: list[str], on: str | None) -> bytes:
    """Returns the question with configurations in use added to those that it ranks."""
    if not given:
        return text

    from pydantic import ValidationError  # noqa: PLC0415

    from service.formats.launch import TABLE  # noqa: PLC0415
    from service.planning.errors import PlanningError  # noqa: PLC0415
    from service.plans.configuration import read_configuration  # noqa: PLC0415
    from service.schemas.plans import PlanRequest  # noqa: PLC0415

    try:
        PlanRequest.model_validate_json(text)
    except ValidationError:
        return text  # its errors are reported when it is asked
    question = json.loads(text)
    workload, known = question["workload"], [*question.get("owned", []), *question.get("rented", [])]
    cluster = _parse_cluster(on, known)
    for each in given:
        tool, _, path = each.partition("=")
        if tool not in TABLE or not path:
            raise typer.BadParameter(f"--configuration takes TOOL=FILE; TOOL is one of {', '.join(TABLE)}")
        try:
            read = read_configuration(Path(path).name, tool, Path(path).read_text(), workload, cluster)
        except PlanningError as error:
            raise PlanRefusedError(f"ironlaw: {path}: {error.detail}") from error
        for note in read.notes:
            typer.echo(f"not read from {path}: {note}", err=True)
        question.setdefault("given", []).append(read.given)
    return json.dumps(question).encode()


def _parse_cluster(on: str | None, known: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    if on is None:
        if len(known) != 1:
            raise typer.BadParameter("--configuration needs --on ACCELERATOR:COUNT")
        cluster: Mapping[str, Any] = known[0]["cluster"]
        return cluster
    name, _, count = on.partition(":")
    if not count.isdecimal():
        raise typer.BadParameter("--on takes ACCELERATOR:COUNT, such as h100-sxm:64")
    return {"accelerator": {"source": "catalog", "id": name}, "accelerator_count": int(count)}


def search_locally(text: bytes, processes: int | None, advance: ReportProgress) -> dict[str, Any]:
    """Searches in processes of this host and returns the answer."""
    from pydantic import ValidationError  # noqa: PLC0415
    from pydantic_core import from_json, to_json  # noqa: PLC0415

    from service.estimates.service import answer_question  # noqa: PLC0415
    from service.kit.http.problems import Problem  # noqa: PLC0415
    from service.kit.http.shapes import load_shape  # noqa: PLC0415
    from service.kit.http.validation import build_body_problem  # noqa: PLC0415
    from service.plans.service import prepare_pieces, rank_plan  # noqa: PLC0415
    from service.schemas.plans import PlanRequest  # noqa: PLC0415

    try:
        try:
            question = PlanRequest.model_validate_json(text)
        except ValidationError as error:
            raise build_body_problem(error, text, load_shape(PlanRequest)) from error
        catalog = load_local_catalog()
        prepared = answer_question(prepare_pieces, question, catalog)
        outcomes = _search_pieces(text, prepared, catalog, processes, advance)
        found = answer_question(lambda asked, known: rank_plan(asked, known, outcomes), question, catalog)
    except Problem as problem:
        raise to_refusal(problem) from problem
    except BrokenProcessPool as error:
        raise PlanRefusedError("ironlaw: a search process died; try --processes 1") from error
    told: dict[str, Any] = from_json(to_json(found))
    return told


def to_refusal(problem: "Problem") -> PlanRefusedError:
    """Converts a problem to lines for the terminal."""
    fields = (
        f"  {field.pointer or 'the question'}: {field.detail} ({field.code})" for field in problem.errors
    )
    return PlanRefusedError(f"ironlaw: {problem.detail}", *fields)


def open_local_database() -> "Database | None":
    """Returns the configured database, whose schema must be current; None if there is none yet."""
    from service.app.settings import Settings  # noqa: PLC0415  # needs the extra `server`
    from service.app.storage import check_schema  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415

    settings = Settings()
    if not settings.database_url and not (settings.data_dir / "ironlaw.db").exists():
        return None
    database = Database(settings.database)
    check_schema(database)
    return database


def load_local_catalog() -> "CatalogView":
    """Returns the catalog of the configured database, or the shipped one if there is no database yet."""
    from service.evidence.snapshot import SnapshotStore, build_shipped_snapshot  # noqa: PLC0415
    from service.kit.security.principals import DEFAULT_TENANT  # noqa: PLC0415

    database = open_local_database()
    if database is None:
        return build_shipped_snapshot()
    store = SnapshotStore(database)
    store.refresh()
    return store.load(DEFAULT_TENANT)


def _search_pieces(
    text: bytes,
    prepared: "PreparedSearch",
    catalog: "CatalogView",
    processes: int | None,
    advance: ReportProgress,
) -> "list[SearchOutcome]":
    """Searches the pieces and returns their outcomes in the same order."""
    pieces = prepared.pieces
    total = sum(piece.candidates for piece in pieces)
    workers = min(processes or os.cpu_count() or 1, len(pieces))
    found: dict[int, SearchOutcome] = {}
    done = 0
    advance(done, total)
    for place, outcome in _iterate_outcomes(text, prepared, catalog, workers, total):
        found[place] = outcome
        done += pieces[place].candidates
        advance(done, total)
    return [found[place] for place in range(len(pieces))]


def _iterate_outcomes(
    text: bytes, prepared: "PreparedSearch", catalog: "CatalogView", workers: int, total: int
) -> "Iterator[tuple[int, SearchOutcome]]":
    """Yields the outcomes as they are finished, with the positions of their pieces."""
    if workers < 2 or total <= _FEW_CANDIDATES:  # noqa: PLR2004  # a single worker is this process
        _SearchProcess.question, _SearchProcess.catalog = prepared.question, catalog
        yield from ((place, _search_piece(piece)) for place, piece in enumerate(prepared.pieces))
        return
    with _open_pool(text, catalog.revision, workers) as pool:
        with _block_interrupts():
            places: dict[Future[SearchOutcome], int] = {
                pool.submit(_search_piece, piece): place for place, piece in enumerate(prepared.pieces)
            }
        waiting = set(places)
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from ((places[future], future.result()) for future in ended)


@contextmanager
def _open_pool(text: bytes, revision: int, workers: int) -> Iterator[ProcessPoolExecutor]:
    """Opens a pool of processes that search pieces of a question; an interrupt terminates them."""
    # Forked processes would share locks of threads that they do not have, such as the progress bar's.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _prepare_process, (text, revision))
    try:
        yield pool
    except BaseException:
        working = list((pool._processes or {}).values())  # noqa: SLF001  # public from Python 3.14 on
        pool.shutdown(wait=False, cancel_futures=True)
        for process in working:
            process.terminate()
        raise
    finally:
        pool.shutdown()


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Blocks interrupts; processes started meanwhile inherit this, and the command itself ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _SearchProcess:
    """Question and catalog of a process, set once because they are the same for all of its pieces."""

    question: Any = None
    catalog: Any = None


def _prepare_process(text: bytes, revision: int) -> None:
    """Prepares a process to search pieces of a question, under the catalog that they were cut for."""
    from service.schemas.plans import PlanRequest  # noqa: PLC0415

    _SearchProcess.question = PlanRequest.model_validate_json(text)
    _SearchProcess.catalog = load_local_catalog()
    if _SearchProcess.catalog.revision != revision:
        raise RuntimeError("the catalog changed while the search started")


def _search_piece(piece: "SearchPiece") -> "SearchOutcome":
    from service.estimates.service import answer_question  # noqa: PLC0415
    from service.plans.service import search_plan_piece  # noqa: PLC0415

    return answer_question(
        lambda question, catalog: search_plan_piece(question, catalog, piece),
        _SearchProcess.question,
        _SearchProcess.catalog,
    )


@contextmanager
def open_client(url: str) -> "Iterator[httpx.Client]":
    """Opens a client of a running service, with the API key of the environment."""
    import httpx  # noqa: PLC0415

    from service.kit.addresses import is_loopback  # noqa: PLC0415
    from service.worker.client import validate_address  # noqa: PLC0415

    key = os.environ.get(KEY_VARIABLE, "").strip()
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    address = validate_address(url)
    # A proxy of the environment is only used for addresses beyond this host.
    beyond = not is_loopback(httpx.URL(address).host)
    with httpx.Client(
        base_url=address, headers=headers, timeout=_TIMEOUT_SECONDS, trust_env=beyond
    ) as client:
        try:
            yield client
        except httpx.TransportError as error:
            raise PlanRefusedError(f"ironlaw: the service does not answer: {type(error).__name__}") from error


def ask_service(url: str, text: bytes, advance: ReportProgress, *, is_kept: bool = True) -> dict[str, Any]:
    """Asks a running service and returns its answer; an interrupt cancels the search there.

    A plan that is not to be kept is deleted there, however the search ends.
    """
    with open_client(url) as client:
        plan = read_answer(client.post("/v1/plans", content=text))
        location = f"/v1/plans/{plan['id']}"
        try:
            while plan["state"] == "running":
                advance(plan["progress"]["candidates_decided"], plan["progress"]["candidates"])
                time.sleep(_POLL_SECONDS)
                plan = read_answer(client.get(location))
        except KeyboardInterrupt:
            if is_kept:
                client.post(f"{location}:cancel")
            raise
        finally:
            if not is_kept:
                _delete_plan(client, location)
    if plan["state"] != "done":
        why = plan.get("error_summary", "")
        raise PlanRefusedError(f"ironlaw: the search ended without an answer: {plan['state']} {why}".rstrip())
    answer: dict[str, Any] = plan["answer"]
    return answer


def _delete_plan(client: "httpx.Client", location: str) -> None:
    response = client.delete(location)
    if not response.is_success:
        typer.echo(f"ironlaw: {location} was not deleted: HTTP status {response.status_code}", err=True)


def read_answer(response: "httpx.Response", member: str = "state") -> dict[str, Any]:
    """Returns the body of a response, which has ``member``.

    Raises :class:`PlanRefusedError` with its problem.
    """
    try:
        body = response.json()
    except ValueError:
        body = {}
    if response.is_success and isinstance(body, dict) and member in body:
        return body
    problem = body if isinstance(body, dict) else {}
    fields = (
        f"  {field.get('pointer') or 'the question'}: {field.get('detail', '')} ({field.get('code', '')})"
        for field in problem.get("errors", [])
    )
    raise PlanRefusedError(
        f"ironlaw: {problem.get('detail') or f'HTTP status {response.status_code}'}", *fields
    )
