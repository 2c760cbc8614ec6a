"""The disk of a worker, and what a loss of power leaves of it.

A process under test has its ``os.fsync`` watched: what was brought to the disk, contents and names, is noted
beside the folder. When the process is dead, :func:`lose_power` makes the folder what the disk may hold then.
A name that was not brought to the disk with its folder is lost, or is there; content that was not is gone,
whole or torn. A rename happens or does not, on both sides; of a file whose old and new folders were brought
to the disk apart, both names may be there.
"""

import json
import os
import stat
import threading
from pathlib import Path

_FOLDER, _FILE = 0o700, 0o600
_WHOLE = "whole"
"""Stands beside the notes when all is noted that a process found."""


class Disk:
    """Notes what is on the disk below ``root``; how it is found is how it is there."""

    def __init__(self, root, notes):
        self._root, self._notes = Path(root), Path(notes)
        self._held = {}
        self._seen = 0
        self._noted = {}
        self._lock = threading.Lock()
        self._notes.mkdir(parents=True, exist_ok=True)
        (self._notes / _WHOLE).unlink(missing_ok=True)
        for old in self._notes.iterdir():
            old.unlink()
        for folder, _, files in os.walk(self._root):
            self._note_names(Path(folder), names_in(folder))
            for name in files:
                path = Path(folder, name)
                self._note_content(path, path.read_bytes())
        (self._notes / _WHOLE).touch()

    def watched(self, fsync):
        """``fsync`` that notes what it brings to the disk: what was there when it began."""

        def watched(descriptor):
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            if not path.is_relative_to(self._root):
                fsync(descriptor)
                return
            is_folder = path.is_dir()
            with self._lock:
                self._seen += 1
                seen, found = self._seen, names_in(path) if is_folder else path.read_bytes()
            fsync(descriptor)
            with self._lock:
                # Of two threads the one that ends last may have begun first: what is there stays there.
                if seen > self._noted.get(path, 0):
                    self._noted[path] = seen
                    (self._note_names if is_folder else self._note_content)(path, found)

        return watched

    def _hold(self, path):
        """The number of an inode, which is not used again while this process lives."""
        number = path.stat().st_ino
        if number not in self._held:
            self._held[number] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return number

    def _note_names(self, folder, names):
        self._write(f"folder-{self._hold(folder)}", json.dumps(names).encode())

    def _note_content(self, path, content):
        self._write(f"file-{self._hold(path)}", content)

    def _write(self, name, content):
        draft = self._notes / f".{name}.{os.getpid()}"
        draft.write_bytes(content)
        draft.replace(self._notes / name)


def names_in(folder):
    """The inode of each name in a folder."""
    return {entry.name: entry.inode() for entry in os.scandir(folder)}


def lose_power(root, notes, chance, kept):
    """Let a folder be what the disk holds; of what was not brought there a share ``kept`` is there too."""
    root, notes = Path(root), Path(notes)
    if not (notes / _WHOLE).exists():
        return  # The process was killed before it had begun: it has written nothing.
    loss = _Loss(root, notes, chance, kept)
    tree = loss.folder(root.stat().st_ino)
    _remake(root, tree)


class _Loss:
    """One loss of power: for each file the same luck wherever its name stands."""

    def __init__(self, root, notes, chance, kept):
        self._notes, self._chance, self._kept = notes, chance, kept
        self._lucky = {}
        self._names, self._contents = {root.stat().st_ino: names_in(root)}, {}
        for folder, folders, files in os.walk(root):
            for name in folders:
                path = Path(folder, name)
                self._names[path.stat().st_ino] = names_in(path)
            for name in files:
                path = Path(folder, name)
                self._contents[path.stat().st_ino] = path.read_bytes()

    def folder(self, number):
        """What is left of a folder: names, and for each the names or the content behind it."""
        now, there = self._names.get(number, {}), self._noted_names(number)
        left = {name: inode for name in {*now, *there} if (inode := self._which(name, now, there))}
        return {name: self._behind(inode) for name, inode in left.items()}

    def _which(self, name, now, there):
        new, old = now.get(name), there.get(name)
        if new == old:
            return new
        return new if self._is_lucky(new or old) else old

    def _behind(self, number):
        if number in self._names or (self._notes / f"folder-{number}").exists():
            return self.folder(number)
        noted = self._notes / f"file-{number}"
        there = noted.read_bytes() if noted.exists() else b""
        now = self._contents.get(number, there)
        if now == there or not self._is_lucky(number):
            return there
        return now if self._kept == 1 else now[: self._chance.randrange(len(now) + 1)]

    def _is_lucky(self, number):
        if number not in self._lucky:
            self._lucky[number] = self._chance.random() < self._kept
        return self._lucky[number]

    def _noted_names(self, number):
        noted = self._notes / f"folder-{number}"
        return json.loads(noted.read_bytes()) if noted.exists() else {}


def _remake(folder, tree):
    """Let a folder hold a tree, and nothing else."""
    for entry in list(os.scandir(folder)):
        path = Path(entry.path)
        if entry.is_dir() and not isinstance(tree.get(entry.name), dict):
            _remake(path, {})
            path.rmdir()
        elif not entry.is_dir():
            path.unlink()
    for name, behind in tree.items():
        path = folder / name
        if isinstance(behind, dict):
            path.mkdir(_FOLDER, exist_ok=True)
            _remake(path, behind)
        else:
            path.write_bytes(behind)
            path.chmod(_FILE)
            assert stat.S_IMODE(path.stat().st_mode) == _FILE
