"""HTTP/1.1 as this machine's server speaks it, as bytes. Nothing here sends anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from .retry import Failure

CONNECT_TIMEOUT = 10.0
WRITE_TIMEOUT = 60.0

KEEP_ALIVE = 20.0
"""Seconds. The server closes idle connections after 30."""

PIECE = 1 << 16


class Broken(Exception):
    """A connection that could not be made, or broke; and whether the server can have got the request."""

    def __init__(self, failure: Failure, said: str, is_foreign: bool = False) -> None:
        super().__init__(said)
        self.failure = failure
        self.is_foreign = is_foreign
        """What came was not HTTP: TLS is spoken there, perhaps."""


@dataclass(frozen=True)
class Head:
    """The head of an answer. ``length`` is None for a body in chunks, and -1 for one to the
    connection's end."""

    status: int
    headers: Mapping[str, str]
    length: Optional[int]
    is_last: bool


def request_head(method: str, path: str, headers: List[Tuple[str, str]], length: Optional[int]) -> bytes:
    """``length`` is None for a body in chunks.

    >>> request_head("GET", "/healthz", [("Accept", "*/*")], 0)
    b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nAccept: */*\\r\\n\\r\\n'
    """
    lines = [f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"]
    for name, value in headers:
        if "\r" in value or "\n" in value or "\r" in name or "\n" in name:
            raise ValueError(f"the header {name!r} has a line break in it")
        lines.append(f"{name}: {value}\r\n")
    if length is None:
        lines.append("Transfer-Encoding: chunked\r\n")
    elif length or method not in ("GET", "HEAD", "DELETE"):
        lines.append(f"Content-Length: {length}\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("latin-1")


def answer_head(text: bytes, method: str) -> Head:
    r"""
    >>> answer_head(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "GET")
    Head(status=200, headers={'content-length': '2'}, length=2, is_last=False)
    """
    first, _, rest = text.decode("latin-1").partition("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
        raise Broken(Failure.LOST, f"the answer begins with {first[:40]!r}")
    status = int(parts[1])
    headers: Dict[str, str] = {}
    for line in _lines(rest):
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    is_last = headers.get("connection", "").lower() == "close"
    if method == "HEAD" or status in (204, 304):
        return Head(status, headers, 0, is_last)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Head(status, headers, None, is_last)
    length = headers.get("content-length")
    if length is None:
        return Head(status, headers, -1, True)
    if not length.isdigit():
        raise Broken(Failure.LOST, f"{length!r} is no length")
    return Head(status, headers, int(length), is_last)


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.split("\r\n") if line)


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def chunk_length(line: bytes) -> int:
    try:
        return int(line.split(b";")[0], 16)
    except ValueError:
        raise Broken(Failure.LOST, f"{line[:20]!r} is no chunk") from None
