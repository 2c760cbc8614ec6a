"""Runs both commands in a fresh clone whose path has spaces: set-up cut short, first start, second start."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PORT = "8765"


def start(clone: Path, target: str) -> subprocess.Popen[str]:
    own = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "IRONLAW_DATA_DIR")
    }
    return subprocess.Popen(
        ["make", target],  # noqa: S607
        cwd=clone,
        env={**own, "IRONLAW_PORT": PORT, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def stop(process: subprocess.Popen[str], how: int) -> None:
    os.killpg(process.pid, how)
    process.communicate(timeout=30)


def served(clone: Path) -> float:
    """Seconds until `make run` has printed the answer to the reference question."""
    started = time.monotonic()
    process = start(clone, "run")
    said = ""
    for line in process.stdout or ():
        said += line
        if line.startswith("    -d "):
            break
    took = time.monotonic() - started
    stop(process, signal.SIGINT)
    for printed in ("19.66 days", "1,415,571.28 USD", "21.19", f"http://127.0.0.1:{PORT}/docs"):
        if printed not in said:
            sys.exit(f"make run did not print {printed}:\n{said}")
    return took


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="a fresh clone ") as place:
        clone = Path(place) / "iron law"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)  # noqa: S607
        cut_short = start(clone, "run")
        time.sleep(8)
        stop(cut_short, signal.SIGKILL)
        print(f"make run after a set-up that was cut short: {served(clone):.1f} s", flush=True)
        print(f"make run again: {served(clone):.1f} s", flush=True)
        for times in ("first", "second"):
            started = time.monotonic()
            done = start(clone, "test")
            said, _ = done.communicate()
            print(
                f"make test, {times} time: {time.monotonic() - started:.0f} s, exit {done.returncode}",
                flush=True,
            )
            if done.returncode:
                sys.exit(said[-8000:])


if __name__ == "__main__":
    main()
