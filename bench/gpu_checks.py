"""Answers of other programs beside the figures of a GPU: its state, its links, its health and its kernels.

Each program is asked where it is installed. Its answer, or the reason that there is none, goes to a file.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Question(NamedTuple):
    """A command line, the file of its answer, and the seconds that it may take."""

    file: str
    command: tuple[str, ...]
    seconds: float = 4.0


BEFORE = (
    Question("nvidia-smi-before.txt", ("nvidia-smi", "-q")),
    Question("nvidia-smi-topo.txt", ("nvidia-smi", "topo", "-m")),
    Question("nvlink-errors-before.txt", ("nvidia-smi", "nvlink", "-e")),
)
AFTER = (
    Question("nvidia-smi-after.txt", ("nvidia-smi", "-q")),
    Question("nvlink-errors-after.txt", ("nvidia-smi", "nvlink", "-e")),
)
DIAGNOSIS = Question("dcgm-diag.json", ("dcgmi", "diag", "-r", "1", "-j"), 40.0)
FOLDERS = (os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin")
SANITIZER = "compute-sanitizer"
SANITIZED = "bench.gpu_sanitized"
TOOLS = {"memcheck": "ERROR SUMMARY", "racecheck": "RACECHECK SUMMARY"}
"""Tools of compute-sanitizer, and the beginning of the line that sums up what each found."""
TOOL_SECONDS = {"memcheck": 65.0, "racecheck": 135.0}
"""Seconds that each takes at most: a training step alone takes 43 s under `racecheck` on an H200."""
FOUND_ERRORS = 86
"""Exit status that the sanitizer is told to end with after an error."""
SECONDS = DIAGNOSIS.seconds + sum(TOOL_SECONDS.values())
"""Seconds that the diagnosis and the sanitizer take at most."""


def find_program(name: str) -> str | None:
    """Returns the path of a program, also of one in the usual folder of the CUDA toolkit."""
    return shutil.which(name, path=os.pathsep.join(FOLDERS))


def ask(folder: Path, questions: Sequence[Question]) -> None:
    """Writes the answer to each question to its file, or the reason that there is none."""
    for question in questions:
        program = find_program(question.command[0])
        if program is None:
            text = f"{question.command[0]} is not installed\n"
        else:
            _, text = run([program, *question.command[1:]], question.seconds)
        (folder / question.file).write_text(text)


def run(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Returns the exit status of a command and what it printed; no status if it was stopped."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            return None, f"{printed}stopped after {seconds:.0f} s\n"
        return process.returncode, printed


def diagnose(folder: Path, seconds: float) -> None:
    """Asks DCGM for its shortest diagnosis, and runs the own kernels under compute-sanitizer.

    What was answered by an earlier call is not asked again.
    """
    ends_at = time.monotonic() + seconds
    if not (folder / DIAGNOSIS.file).exists():
        ask(folder, [DIAGNOSIS])
    program = find_program(SANITIZER)
    if program is None:
        return
    for tool in TOOLS:
        if summary(folder, tool) is None:
            command = [program, "--tool", tool, "--error-exitcode", str(FOUND_ERRORS)]
            left = min(TOOL_SECONDS[tool], ends_at - time.monotonic())
            status, printed = run([*command, sys.executable, "-m", SANITIZED], left)
            ended = "" if status is None else f"ended with {status}\n"
            report(folder, tool).write_text(printed + ended)


def report(folder: Path, tool: str) -> Path:
    """Returns the file of a tool's report."""
    return folder / f"sanitizer-{tool}.txt"


def summary(folder: Path, tool: str) -> str | None:
    """Returns the line that sums up what a tool found; None before it has come to its end."""
    file = report(folder, tool)
    text = file.read_text() if file.exists() else ""
    return next((line.lstrip("= ") for line in text.splitlines() if TOOLS[tool] in line), None)


def lines(folder: Path) -> Iterator[str]:
    """Yields a line for each check: what it found, or why it found nothing."""
    diagnosis = folder / DIAGNOSIS.file
    if diagnosis.exists():
        text = diagnosis.read_text().strip()
        yield f"dcgmi diag -r 1: {diagnosis.name}" if text.startswith("{") else f"dcgmi: {text[-200:]}"
    if find_program(SANITIZER) is None:
        yield f"{SANITIZER} is not installed: no kernel was run under it"
        return
    for tool in TOOLS:
        file = report(folder, tool)
        last = file.read_text().strip().splitlines()[-1:] if file.exists() else []
        yield f"{tool}: {summary(folder, tool) or 'no summary'}; {' '.join(last) or 'not run'}"


def is_sound(folder: Path) -> bool:
    """Returns true unless a tool of the sanitizer found an error, a result was wrong, or it did not end."""
    return all(
        (file := report(folder, tool)).exists() and file.read_text().endswith("ended with 0\n")
        for tool in (TOOLS if find_program(SANITIZER) else ())
    )
