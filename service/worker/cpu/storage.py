"""A file written and flushed to its device, or read from the device and not from the page cache."""

import errno
import hashlib
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import StorageWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.host_timed import NUMPY, build_correctness, build_generator
from service.worker.host import file_system

PATTERN_BYTES = 2**26
"""Random bytes, repeated in a longer file."""
DIRECT_ALIGNMENT = 4096
FOLDER = "/var/tmp"  # noqa: S108  # made unguessable and private by tempfile
"""On a device by convention, where /tmp is often in memory (Filesystem Hierarchy Standard, 5.15)."""
IN_MEMORY = ("tmpfs", "ramfs")
DROP_ATTEMPTS = 6
PROBES = 16


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """A file of random bytes in a temporary folder: ``TMPDIR`` where it is set, otherwise ``/var/tmp``.

    Raises :class:`Unsupported` where the folder is in memory, has no room, or its page cache cannot be
    passed by. Caches of the device, and of a host below a virtual machine, are not passed by.
    """
    del accelerator_index
    work = benchmark.work
    if not isinstance(work, StorageWork):
        raise Unsupported(f"{work.kind} is not a storage benchmark")
    block = min(work.block_bytes, work.file_bytes)
    if block > PATTERN_BYTES:
        raise Unsupported(f"blocks of {block} bytes exceed the largest size of {PATTERN_BYTES} bytes")
    pattern = build_generator(benchmark, seed).bytes(
        min(work.file_bytes, PATTERN_BYTES - PATTERN_BYTES % block)
    )
    with create_folder() as folder:
        kind = check_file_system(Path(folder), work.file_bytes)
        file = PatternFile(Path(folder) / "data", work.file_bytes, block, pattern)
        if work.direction == "write":
            yield TimedStorage(_build_facts(f"write and fsync on {kind}", pattern, work), file, file.write)
        else:
            file.write()
            method, read = file.select_uncached_read()
            yield TimedStorage(_build_facts(f"{method} on {kind}", pattern, work), file, read)


def create_folder() -> tempfile.TemporaryDirectory[str]:
    """Creates the folder of a benchmark; raises :class:`Unsupported` where none can be created."""
    at = os.environ.get("TMPDIR") or FOLDER
    try:
        return tempfile.TemporaryDirectory(prefix="ironlaw-", dir=at)
    except OSError as error:
        raise Unsupported(f"no file can be created in {at}: {error.strerror}") from error


def check_file_system(folder: Path, file_bytes: int) -> str:
    """Returns the kind of file system; raises :class:`Unsupported` for one in memory or without room."""
    kind = file_system(folder)
    if kind in IN_MEMORY:
        raise Unsupported(f"the temporary folder is in memory ({kind}); name one on a device with TMPDIR")
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < 2 * file_bytes:
        raise Unsupported(f"a file of {file_bytes} bytes needs twice that space in the temporary folder")
    return kind or "an unknown file system"


def _build_facts(algorithm: str, pattern: bytes, work: StorageWork) -> MeasurementFacts:
    repeated = f", repeated every {len(pattern)}" if len(pattern) < work.file_bytes else ""
    return MeasurementFacts(
        library=f"own loop over blocks of {work.block_bytes} bytes",
        algorithm=algorithm,
        data=f"random bytes{repeated}",
        timer="host_clock",
        working_set_bytes=work.file_bytes,
        threads=1,
        software=(NUMPY,),
    )


@dataclass(slots=True)
class TimedStorage:
    """One direction of transfers of a file, by the host's clock."""

    facts: MeasurementFacts
    file: "PatternFile"
    transfer: Callable[[], int]

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` transfers, without the preparation before each."""
        return sum(self.transfer() for _ in range(iterations))

    def check(self) -> CorrectnessCheck:
        """Compares the digest of the file as read from the device with that of the bytes from the seed."""
        found, wanted = self.file.compute_digest(), self.file.compute_expected_digest()
        return build_correctness("digest of the file read back", float(found != wanted), 0.0, found)


class PatternFile:
    """A file of known bytes."""

    def __init__(self, path: Path, size: int, block: int, pattern: bytes) -> None:
        self.path, self.size, self.block, self.pattern = path, size, block, memoryview(pattern)

    def write(self) -> int:
        """Returns the nanoseconds to write and flush every block; the old file is deleted before."""
        self.path.unlink(missing_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            start = time.perf_counter_ns()
            for block in self.iterate_blocks():
                _write_all(descriptor, block)
            os.fsync(descriptor)
            return time.perf_counter_ns() - start
        finally:
            os.close(descriptor)

    def select_uncached_read(self) -> tuple[str, Callable[[], int]]:
        """Returns a method of uncached reads and its name; it returns nanoseconds each time."""
        direct = getattr(os, "O_DIRECT", None)
        if direct and self.block % DIRECT_ALIGNMENT == 0 and self._can_read_directly(direct):
            return "O_DIRECT", lambda: self._read(direct)
        if self._can_drop_cache():
            return "posix_fadvise DONTNEED", self._read_after_drop
        raise Unsupported("neither O_DIRECT nor posix_fadvise bypasses the page cache")

    def compute_digest(self) -> str:
        """Returns the SHA-256 of the file, from the device if the cache can be dropped."""
        self.drop_cache()
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def compute_expected_digest(self) -> str:
        """Returns the SHA-256 of the expected bytes."""
        digest = hashlib.sha256()
        for block in self.iterate_blocks():
            digest.update(block)
        return digest.hexdigest()

    def iterate_blocks(self) -> Iterator[memoryview]:
        """Yields the expected bytes of each block."""
        for start in range(0, self.size, self.block):
            at = start % len(self.pattern)
            yield self.pattern[at : at + min(self.block, self.size - start)]

    def _read(self, flags: int) -> int:
        descriptor = os.open(self.path, os.O_RDONLY | flags)
        # Anonymous memory begins on a page, as direct reads demand.
        with mmap.mmap(-1, self.block) as buffer:
            try:
                start = time.perf_counter_ns()
                left = self.size
                while left and (count := os.readv(descriptor, [buffer])):
                    left -= count
                took = time.perf_counter_ns() - start
            finally:
                os.close(descriptor)
        if left:
            raise OSError(errno.EIO, "the file ended early")
        return took

    def _read_after_drop(self) -> int:
        self.drop_cache()
        return self._read(0)

    def _can_read_directly(self, direct: int) -> bool:
        """Returns true if a direct read works and leaves nothing in the page cache, as a fall-back would."""
        self._can_drop_cache()
        try:
            self._read(direct)
        except OSError:
            return False
        return self.is_cached() is not True

    def _can_drop_cache(self) -> bool:
        """Returns true if the page cache drops the file on request; busy pages stay a while."""
        for attempt in range(DROP_ATTEMPTS):
            self.drop_cache()
            if self.is_cached() is not True:
                break
            time.sleep(0.01 * 2**attempt)
        return self.is_cached() is False

    def drop_cache(self) -> None:
        """Asks the page cache to drop the file."""
        if hasattr(os, "posix_fadvise"):
            with self.path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def is_cached(self) -> bool | None:
        """Returns true if any of some probed bytes are in the page cache; None if the system cannot tell."""
        if not hasattr(os, "RWF_NOWAIT"):
            return None
        with self.path.open("rb") as file:
            for probe in range(PROBES):
                try:
                    os.preadv(file.fileno(), [bytearray(1)], self.size * probe // PROBES, os.RWF_NOWAIT)
                except BlockingIOError:
                    continue
                except OSError:
                    return None
                return True
        return False


def _write_all(descriptor: int, block: memoryview) -> None:
    while block:
        block = block[os.write(descriptor, block) :]
