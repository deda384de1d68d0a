"""Server-sent events out of bytes, as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List


@dataclass(frozen=True)
class Message:
    """One event of a stream."""

    id: str
    event: str
    data: str


class Parser:
    r"""Feeds on pieces of any size.

    >>> parser = Parser()
    >>> list(parser.feed(b"id: 1\nevent: stdout\nda"))
    []
    >>> list(parser.feed(b"ta: {}\n\n: a comment\n\n"))
    [Message(id='1', event='stdout', data='{}')]
    """

    def __init__(self) -> None:
        self._rest = b""
        self._id = ""
        self._event = ""
        self._data: List[str] = []

    def feed(self, piece: bytes) -> Iterator[Message]:
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            text = line.rstrip(b"\r").decode("utf-8", "replace")
            if text:
                self._field(text)
            elif self._data:
                yield Message(self._id, self._event or "message", "\n".join(self._data))
                self._event, self._data = "", []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        if value.startswith(" "):
            value = value[1:]
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            self._id = value
