"""What differs between sync and async beyond the words ``async`` and ``await``."""

from __future__ import annotations

import select
import socket
import threading
import time
from typing import Any, Callable, Iterator, Tuple, Type, TypeVar

T = TypeVar("T")

INTERRUPTIONS: Tuple[Type[BaseException], ...] = (KeyboardInterrupt, SystemExit)
"""How a program says that it no longer wants what it waits for: Ctrl-C, or a signal's
handler that exits."""

sleep = time.sleep
Semaphore = threading.Semaphore
Lock = threading.Lock


class _Place:
    pass


_PLACE = _Place()


def place() -> Any:
    """What connections belong to: here all threads share them."""
    return _PLACE


def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Work that blocks."""
    return work(*args)


def shielded(work: Callable[[], object]) -> None:
    """Work that is done on the way out, as well as it goes."""
    try:
        work()
    except Exception:
        # The caller is told of the interruption, not of this.
        pass


def pieces(source: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces that are made by blocking work."""
    return source


class Stream:
    """A Unix socket. What takes too long ends the connection: there is nothing else to be done with it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._rest = b""
        self._timeout = 0.0
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    @classmethod
    def connect(cls, path: str, timeout: float) -> Stream:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(timeout)
            made.connect(path)
        except BaseException:
            made.close()
            raise
        return cls(made)

    def is_open(self) -> bool:
        """Nothing can be read on a connection that nobody uses but its end."""
        return not self._poll.poll(0)

    def send(self, data: bytes, timeout: float) -> None:
        self._limit(timeout)
        self._socket.sendall(data)

    def _limit(self, timeout: float) -> None:
        if timeout != self._timeout:
            self._socket.settimeout(timeout)
            self._timeout = timeout

    def _more(self, timeout: float) -> bytes:
        self._limit(timeout)
        return self._socket.recv(1 << 16)

    def _until(self, end: bytes, timeout: float) -> bytes:
        while end not in self._rest:
            piece = self._more(timeout)
            if not piece:
                raise EOFError
            self._rest += piece
            if len(self._rest) > 1 << 20:
                raise OSError("the head of the answer is too long")
        found, _, self._rest = self._rest.partition(end)
        return found + end

    def read_head(self, timeout: float) -> bytes:
        return self._until(b"\r\n\r\n", timeout)

    def read_line(self, timeout: float) -> bytes:
        return self._until(b"\r\n", timeout)

    def read_exactly(self, count: int, timeout: float) -> bytes:
        found = [self.read_some(count, timeout)]
        left = count - len(found[0])
        while left:
            if not found[-1]:
                raise EOFError
            found.append(self.read_some(left, timeout))
            left -= len(found[-1])
        return b"".join(found)

    def read_some(self, most: int, timeout: float) -> bytes:
        if not self._rest:
            self._rest = self._more(timeout)
        found, self._rest = self._rest[:most], self._rest[most:]
        return found

    def close(self) -> None:
        self._socket.close()
