"""Results of ``llama-bench`` as JSON, JSON lines or CSV: a test each, of a prompt or of generation.

``avg_ts`` is tokens per second, ``avg_ns`` nanoseconds of the whole test. Rows of the CSV that have fewer
values than the header has names are read from both ends: the model from the front, lengths and figures from
the back, nothing in between.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements import serving
from service.formats.measurements.readings import (
    MOST_PARTS,
    NOT_A_RESULT,
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    build_facts,
    check_lines,
    check_part_count,
    read_count,
    read_mapping,
    read_part_lines,
    read_positive,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document
from service.planning.errors import PlanningError

_FRONT: Final = "n_threads"
"""Last name of the CSV that stands at the same place from the front in every version."""
_BACK: Final = "n_prompt"
_CACHES: Final = {
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "q8_0": "q8_0",
    "q5_0": "q5_0",
    "q4_0": "q4_0",
}


def measurements_from_llama_bench(content: str) -> FileMeasurements:
    """The tests of llama-bench; raises PlanningError for other files."""
    read = FileMeasurements()
    for pointer, test in _read_tests(content, read):
        try:
            read.runs.append(_read_run(pointer, test))
        except RowError as error:
            read.record_refusal(pointer, error)
    return require_results(read, "tests of llama-bench")


def _read_tests(content: str, read: FileMeasurements) -> Iterator[tuple[str, Mapping[str, object]]]:
    text = content.lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        listed = parse_document(content)
        entries = listed if isinstance(listed, list) else []
        yield from ((f"/{place}", read_mapping(each)) for place, each in enumerate(check_part_count(entries)))
    elif text.startswith("{"):
        yield from (
            (pointer, read_mapping(parse_document(line))) for pointer, line in read_part_lines(content)
        )
    else:
        yield from _read_table(content, read)


def _read_table(content: str, read: FileMeasurements) -> Iterator[tuple[str, Mapping[str, object]]]:
    check_lines(content, MOST_PARTS)
    reader = csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline=""))
    try:
        header = next(reader, [])
        if _BACK not in header or "avg_ts" not in header:
            raise PlanningError("FORMAT", "/content", "the table has no columns of llama-bench")
        front = header.index(_FRONT) + 1 if _FRONT in header else 0
        back = len(header) - header.index(_BACK)
        for cells in reader:
            if cells:
                yield (
                    f"/{reader.line_num}",
                    _match_cells(f"/{reader.line_num}", header, cells, (front, back), read),
                )
    except csv.Error as error:
        raise PlanningError("FORMAT", "/content", f"line {reader.line_num} is no CSV") from error


def _match_cells(
    pointer: str, header: list[str], cells: list[str], ends: tuple[int, int], read: FileMeasurements
) -> Mapping[str, object]:
    """Returns cells by name; if their numbers differ, as many as known from the front and from the back."""
    if len(cells) == len(header):
        return dict(zip(header, cells, strict=True))
    read.record_note(
        pointer, "COLUMNS_DIFFER", "the row has another number of values than the header has names"
    )
    front, back = ends
    if len(cells) < front + back:
        return {}
    return {
        **dict(zip(header[:front], cells[:front], strict=True)),
        **dict(zip(header[-back:], cells[-back:], strict=True)),
    }


def _read_run(pointer: str, test: Mapping[str, object]) -> MeasuredFileRun:
    prompt, generated = read_count(test.get("n_prompt")), read_count(test.get("n_gen"))
    if prompt and generated:
        raise RowError("COMBINED_TEST", "a test of prompt and generation together gives neither time")
    if not prompt and not generated:
        raise RowError(NOT_A_RESULT, "the row does not state its test")
    rate = read_positive(test.get("avg_ts"))
    depth = read_count(test.get("n_depth")) or 0
    place = f"{pointer}/avg_ts"
    if prompt:
        readings = (
            FigureReading(place, serving.FIRST_TOKEN, prompt / rate, "mean"),
            FigureReading(place, serving.INPUT, rate, "mean"),
        )
        lengths = build_facts(workload__input_tokens=prompt, workload__output_tokens=1)
    else:
        readings = (
            FigureReading(place, serving.OUTPUT_TOKEN, 1.0 / rate, "mean"),
            FigureReading(place, serving.OUTPUT, rate, "mean"),
        )
        lengths = build_facts(workload__input_tokens=depth + 1, workload__output_tokens=generated or 0)
    if prompt and depth:
        raise RowError("PROMPT_AT_DEPTH", "an estimate has no separate time for a prompt behind others")
    return MeasuredFileRun(pointer, readings, _read_facts(test) | lengths)


def _read_facts(test: Mapping[str, object]) -> dict[str, RunFact]:
    name = str(test.get("model_filename") or "").rpartition("/")[2].removesuffix(".gguf")
    kinds = {str(test.get("type_k")), str(test.get("type_v"))}
    device = str(test.get("gpu_info") or "")
    return build_facts(
        model_name=name or None,
        accelerator_name=device if device and "," not in device else None,
        workload__concurrency=1,
        workload__kv_cache_precision=_CACHES.get(kinds.pop()) if len(kinds) == 1 else None,
        workload__engine__name="llama.cpp",
    )
