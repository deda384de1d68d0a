"""Trees of files as tar streams, in memory of constant size."""

from __future__ import annotations

import fnmatch
import io
import os
from typing import TYPE_CHECKING, BinaryIO, Callable, Iterator, List, Optional, Sequence

if TYPE_CHECKING:
    import tarfile

# tarfile brings four compressors along, and is imported where a tree is packed or unpacked.

PIECE = 256 * 1024
"""Bytes that are read, sent and counted at once."""


def read(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while True:
            piece = file.read(PIECE)
            if not piece:
                return
            yield piece


def counted(pieces: Iterator[bytes], progress: Optional[Callable[[int], object]]) -> Iterator[bytes]:
    done = 0
    for piece in pieces:
        yield piece
        done += len(piece)
        if progress:
            progress(done)
    if progress and not done:
        # Of an empty file, too, it is told that it is done.
        progress(0)


def is_ignored(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path, relative to its tree, is left out.

    >>> is_ignored("a/node_modules", ["node_modules"]), is_ignored("a/b.pyc", ["*.pyc"])
    (True, True)
    >>> is_ignored("build/x", ["/build/"]), is_ignored("src/build", ["/build/"])
    (False, False)
    >>> is_ignored("build", ["/build/"])
    True
    """
    name = path.rsplit("/", 1)[-1]
    for pattern in patterns:
        bare = pattern.strip("/")
        if bare.endswith("/**"):
            bare = bare[:-3]
        if bare.startswith("**/"):
            bare, pattern = bare[3:], bare[3:]
        if "/" in pattern.rstrip("/"):
            if fnmatch.fnmatchcase(path, bare):
                return True
        elif fnmatch.fnmatchcase(name, bare):
            return True
    return False


class _Pieces(io.RawIOBase):
    """Collects what tarfile writes."""

    def __init__(self) -> None:
        self.parts: List[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        self.parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self.parts)
        self.parts, self.size = [], 0
        return taken


def pack(root: str, ignore: Sequence[str] = ()) -> Iterator[bytes]:
    """What is below a directory. Links stay links; what is neither file, directory nor link is left out."""
    import tarfile

    out = _Pieces()
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=PIECE) as tar:
        for path, name in entries(root, "", ignore):
            try:
                info = tar.gettarinfo(path, name)
            except OSError:
                continue
            if info is None:
                continue
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            if not info.isreg():
                tar.addfile(info)
                continue
            # A file's other name is one of its own here.
            info.type, info.size = tarfile.REGTYPE, os.stat(path).st_size
            yield from _file(tar, info, path, out)
            if out.size >= PIECE:
                yield out.take()
    yield out.take()


def _file(tar: tarfile.TarFile, info: tarfile.TarInfo, path: str, out: _Pieces) -> Iterator[bytes]:
    """One file, piece by piece: tarfile's own way would hold all of it here."""
    import tarfile

    try:
        file = open(path, "rb")
    except OSError:
        return
    with file:
        stream = tar.fileobj
        assert stream is not None
        stream.write(info.tobuf(tar.format or tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        left = info.size
        while left:
            piece = file.read(min(PIECE, left))
            # A file that shrinks meanwhile keeps the size that was announced.
            piece = piece or bytes(min(PIECE, left))
            stream.write(piece)
            left -= len(piece)
            if out.size >= PIECE:
                yield out.take()
        stream.write(bytes(-info.size % 512))


def entries(root: str, below: str, ignore: Sequence[str]) -> "Iterator[tuple[str, str]]":
    with os.scandir(os.path.join(root, below) if below else root) as found:
        there = sorted(found, key=lambda entry: entry.name)
    for entry in there:
        name = f"{below}/{entry.name}" if below else entry.name
        if is_ignored(name, ignore):
            continue
        yield entry.path, name
        if entry.is_dir(follow_symlinks=False):
            yield from entries(root, name, ignore)


def unpack(file: BinaryIO, target: str) -> None:
    """Puts a tar's files below a directory. What is in it comes from elsewhere: nothing leaves
    the directory, no link leads out of it, and nothing but files, directories and links is made."""
    import tarfile

    os.makedirs(target, exist_ok=True)
    with tarfile.open(fileobj=file, mode="r:*") as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(target, filter="data")
            return
        for member in tar:
            _unpack_one(tar, member, target)


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, target: str) -> None:
    """For Pythons whose tarfile has no filters: links are left out."""
    import shutil
    import tarfile

    place = os.path.join(target, member.name)
    inside = os.path.realpath(target)
    real = os.path.realpath(place)
    if real != inside and not real.startswith(inside + os.sep):
        raise tarfile.TarError(f"{member.name!r} leads out of {target!r}")
    if member.isdir():
        os.makedirs(real, exist_ok=True)
    elif member.isreg():
        os.makedirs(os.path.dirname(real), exist_ok=True)
        source = tar.extractfile(member)
        assert source is not None
        with source, open(real, "wb") as out:
            shutil.copyfileobj(source, out, PIECE)
        os.chmod(real, member.mode & 0o755 | 0o600)


def forget(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
