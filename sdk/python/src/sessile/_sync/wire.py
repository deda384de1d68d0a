# Made from ../_async by scripts/make_sync.py. Do not edit.
"""A connection to this machine's server, over its socket.

httpx takes longer for a request than this server for the answer, and longer to import than all the
rest of this package. For this one server, which is always of the same kind, its work is little.
"""

from __future__ import annotations

import time
from typing import Any, Iterator, List, Mapping, Optional, Tuple, cast

from .._core import local, wires
from .._core.requests import Request
from .._core.retry import Failure
from .._core.wires import Broken
from . import _io


class LocalWire:
    """One connection, made when it is first needed."""

    def __init__(self, address: local.Address, headers: List[Tuple[str, str]]) -> None:
        self._address = address
        self._headers = headers
        self._stream: Optional[_io.Stream] = None
        self._used = 0.0
        self._head = wires.Head(0, {}, 0, True)
        self._left = 0
        self._timeout = 0.0
        self.is_whole = False

    def begin(self, request: Request) -> None:
        """Sends a request, and reads the head of its answer."""
        self.is_whole = False
        stream = self._connected()
        self._timeout = request.read_timeout
        content: Any = request.content() if callable(request.content) else request.content
        whole: Optional[bytes] = b"" if content is None else content if isinstance(content, bytes) else None
        length = None if whole is None else len(whole)
        head = wires.request_head(request.method, request.path, [*self._headers, *request.headers], length)
        try:
            if whole is None:
                stream.send(head, wires.WRITE_TIMEOUT)
                pieces = cast("Iterator[bytes]", content)
                for piece in pieces:
                    if piece:
                        stream.send(wires.chunk(piece), wires.WRITE_TIMEOUT)
                stream.send(b"0\r\n\r\n", wires.WRITE_TIMEOUT)
            else:
                stream.send(head + whole, wires.WRITE_TIMEOUT)
        except OSError:
            # A server that refuses a long body answers before it has read it.
            pass
        self._head = self._read_head(stream, request.method)
        self._left = self._head.length or 0
        if self._head.length == 0:
            self._over()

    def _connected(self) -> _io.Stream:
        stream = self._stream
        if stream is not None:
            if time.monotonic() - self._used < wires.KEEP_ALIVE and stream.is_open():
                return stream
            stream.close()
        try:
            self._stream = _io.Stream.connect(self._address.path, wires.CONNECT_TIMEOUT)
        except OSError as error:
            raise Broken(Failure.UNSENT, str(error)) from error
        return self._stream

    def _read_head(self, stream: _io.Stream, method: str) -> wires.Head:
        while True:
            try:
                head = wires.answer_head(stream.read_head(self._timeout), method)
            except (OSError, EOFError) as error:
                raise Broken(Failure.LOST, str(error) or "the server closed the connection") from error
            if head.status >= 200:
                return head

    @property
    def status(self) -> int:
        return self._head.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._head.headers

    def read(self) -> bytes:
        """The whole body."""
        if self._head.length and self._head.length > 0 and self._stream is not None:
            try:
                content = self._stream.read_exactly(self._head.length, self._timeout)
            except (OSError, EOFError) as error:
                raise Broken(Failure.LOST, str(error) or "the answer was cut off") from error
            self._over()
            return content
        found = [piece for piece in self.pieces()]
        return b"".join(found)

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes."""
        while not self.is_whole:
            piece = self._piece()
            if piece:
                yield piece

    def _piece(self) -> bytes:
        stream = self._stream
        if stream is None:
            raise Broken(Failure.LOST, "the connection was closed")
        try:
            if self._head.length is None:
                return self._piece_of_chunk(stream)
            most = wires.PIECE if self._head.length < 0 else min(self._left, wires.PIECE)
            piece: bytes = stream.read_some(most, self._timeout)
        except (OSError, EOFError) as error:
            raise Broken(Failure.LOST, str(error) or "the answer was cut off") from error
        if self._head.length < 0:
            if not piece:
                self._over()
            return piece
        if not piece:
            raise Broken(Failure.LOST, "the answer was cut off")
        self._left -= len(piece)
        if self._left == 0:
            self._over()
        return piece

    def _piece_of_chunk(self, stream: _io.Stream) -> bytes:
        if self._left == 0:
            self._left = wires.chunk_length(stream.read_line(self._timeout))
            if self._left == 0:
                while stream.read_line(self._timeout).strip():
                    pass
                self._over()
                return b""
        piece: bytes = stream.read_some(min(self._left, wires.PIECE), self._timeout)
        if not piece:
            raise EOFError
        self._left -= len(piece)
        if self._left == 0:
            stream.read_line(self._timeout)
        return piece

    def _over(self) -> None:
        self.is_whole = not self._head.is_last
        self._used = time.monotonic()
        if self._head.is_last:
            # Read to the end, but of no use any more.
            self.is_whole = True
            if self._stream is not None:
                self._stream.close()
                self._stream = None

    def finish(self) -> None:
        """Nobody reads on."""

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
