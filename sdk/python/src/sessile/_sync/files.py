# Made from ../_async by scripts/make_sync.py. Do not edit.
"""The files of a session's workspace."""

from __future__ import annotations

import builtins
import json
import os
from typing import Any, BinaryIO, Callable, List, Optional, Sequence, Union

from .._core import requests, trees
from .._core.requests import Repeat
from .._core.sse import Message
from ..errors import FileNotFoundError
from ..events import FileChanged
from ..records import FileInfo, rows
from . import _io
from .base import SessionPart
from .following import Feed, named

Progress = Callable[[int], object]
"""Is told how many bytes have been moved so far."""


class Files(SessionPart):
    """The part of a session that reads and writes its files.

    Paths are relative to the workspace, or absolute and within it.
    """

    def read_file(self, path: str) -> str:
        """A file as text.

        >>> session.write_file("notes/today.txt", "hello")
        >>> session.read_file("notes/today.txt")
        'hello'
        """
        return self.read_file_bytes(path).decode("utf-8", "replace")

    def read_file_bytes(self, path: str, start: int = 0, length: Optional[int] = None) -> bytes:
        """A file, or a part of it."""
        self._check()
        request = requests.get(f"{self._path}/files/content", subject=self._id, path=path)
        if start or length is not None:
            if length is not None and length <= 0:
                return b""
            end = "" if length is None else start + length - 1
            request = requests.ranged(request, f"bytes={start}-{end}")
        return self._connection.send(request).content

    def write_file(self, path: str, content: Union[str, bytes], *, mode: Optional[str] = None) -> None:
        """Makes or replaces a file, and the directories that it lies in."""
        self._check()
        data = content.encode() if isinstance(content, str) else content
        call = f"{self._path}/files/content"
        request = requests.send(call, data, subject=self._id, path=path, mode=mode, parents=True)
        self._connection.send(request)

    def list_files(
        self, path: str = "", *, recursive: bool = False, depth: Optional[int] = None
    ) -> List[FileInfo]:
        """What is in a directory.

        >>> session.write_file("a/b.txt", "b")
        >>> [file.path for file in session.list_files("a")]
        ['a/b.txt']
        """
        levels = depth if depth is not None else (DEEP if recursive else 1)
        answer = self._get("/files", path=path or ".", depth=levels, limit=MOST)
        return [FileInfo.of(row) for row in rows(answer)]

    def stat(self, path: str) -> FileInfo:
        return FileInfo.of(self._get("/files/stat", path=path))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        self._post("/files/directory", {"path": path, "parents": parents}, repeat=Repeat.SAFE)

    def move(self, source: str, target: str, *, overwrite: bool = False) -> None:
        self._post("/files/move", {"from": source, "to": target, "overwrite": overwrite})

    def remove(self, path: str, *, recursive: bool = False) -> None:
        self._check()
        call = f"{self._path}/files"
        self._connection.send(requests.delete(call, subject=self._id, path=path, recursive=recursive))

    def upload(
        self,
        source: "Union[str, os.PathLike[str]]",
        target: str = ".",
        *,
        ignore: Sequence[str] = (),
        progress: Optional[Progress] = None,
    ) -> None:
        """Brings a file, or all that is in a directory, from this machine into the session.

        Args:
            target: the file's new path, or the directory to put the tree into.
            ignore: patterns of what is left out of a tree: ``node_modules``, ``*.pyc``.
            progress: is called with the number of bytes so far.
        """
        self._check()
        place = os.fspath(source)
        if os.path.isdir(place):

            def tree() -> Any:
                return _io.pieces(trees.counted(trees.pack(place, ignore), progress))

            call = f"{self._path}/files/archive"
            request = requests.as_tar(requests.send(call, tree, subject=self._id, path=target))
        elif os.path.isfile(place):

            def file() -> Any:
                return _io.pieces(trees.counted(trees.read(place), progress))

            call = f"{self._path}/files/content"
            request = requests.send(call, file, subject=self._id, path=target, parents=True)
        else:
            raise builtins.FileNotFoundError(f"there is no {place!r} to upload")
        self._connection.send(request)

    def download(
        self, source: str, target: "Union[str, os.PathLike[str]]", *, progress: Optional[Progress] = None
    ) -> None:
        """Brings a file, or all that is in a directory, from the session to this machine.

        A tree's files come to lie below ``target``, and nothing outside of it is touched.
        """
        place = os.fspath(target)
        if self.stat(source).is_dir:
            import tempfile

            with tempfile.TemporaryFile() as spool:
                self._fetch("archive", source, spool, progress)
                spool.seek(0)
                _io.in_thread(trees.unpack, spool, place)
            return
        if os.path.isdir(place):
            place = os.path.join(place, os.path.basename(source))
        try:
            # Under its own name only when it is complete.
            with open(place + ".part", "wb") as file:
                self._fetch("content", source, file, progress)
            os.replace(place + ".part", place)
        finally:
            trees.forget(place + ".part")

    def _fetch(self, call: str, path: str, file: BinaryIO, progress: Optional[Progress]) -> None:
        self._check()
        request = requests.get(f"{self._path}/files/{call}", subject=self._id, path=path)
        body = self._connection.open(request)
        done = 0
        try:
            for piece in body:
                file.write(piece)
                done += len(piece)
                if progress:
                    progress(done)
            if progress and not done:
                progress(0)
        finally:
            body.close()

    def watch(self, path: str = "", *, recursive: bool = True) -> Feed[FileChanged]:
        """Changes of files, as they happen, until the session ends; see :class:`Feed`.

        >>> with session.watch() as changes:
        ...     result = session.exec("echo hi > new.txt")
        ...     for file in changes:
        ...         print(file.change, file.path)
        ...         break
        created new.txt

        A change ``overflow`` says that some are missing, because there were too many, or because
        the connection broke: list the files anew then.
        """
        self._check()

        def after(position: str) -> requests.Request:
            return requests.events(
                f"{self._path}/files/watch", position, subject=self._id, path=path or ".", recursive=recursive
            )

        is_first = True

        def read(message: Message) -> Optional[FileChanged]:
            nonlocal is_first
            if message.event == "ready":
                was_first, is_first = is_first, False
                return None if was_first else FileChanged("", "overflow")
            if message.event == "ended":
                return None
            return FileChanged(json.loads(message.data).get("path", ""), message.event)

        return Feed(self._connection, after, named("ended"), read)


DEEP = 1000
"""Levels of directories in a listing of everything."""

MOST = 100_000
"""Entries of a listing."""
