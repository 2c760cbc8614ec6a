"""Signals to stop a worker: SIGTERM and SIGINT."""

import os
import signal
import threading
from collections.abc import Callable


def handle_stop_signals(first: Callable[[], None], second: Callable[[], None] | None = None) -> None:
    """Calls ``first`` on a signal to stop, and ``second`` on another one.

    A signal handler may run while its thread holds any lock, so it only writes to a pipe.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)

    def act_on_signals() -> None:
        for act in (first, second or first):
            os.read(read_end, 1)
            act()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(write_end, b"."))
    threading.Thread(target=act_on_signals, name="signals", daemon=True).start()
