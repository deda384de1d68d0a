# Made from ../_async by scripts/make_sync.py. Do not edit.
"""One run, by its number."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Optional, Union

from .._core import requests
from .._core.requests import WAIT, Repeat
from .._core.spans import Span, seconds, wire
from ..errors import StillRunningError
from ..results import Output, Result, Screen
from .following import Stream

if TYPE_CHECKING:
    from .session import Session


class Run:
    """A run that goes on by itself, whatever becomes of this program.

    >>> run = session.background("sleep 0.2; echo done")
    >>> run.wait().stdout
    'done\\n'
    """

    def __init__(self, session: Session, number: int, command: Optional[str] = None) -> None:
        self.session = session
        self.number = number
        self.command = command

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} of {self.session.id}>"

    def _path(self, call: str = "") -> str:
        return f"{self.session._path}/runs/{self.number}{call}"

    def _ask(self, call: str, body: Any, patience: float = 0.0) -> Any:
        request = requests.post(
            self._path(call), body, subject=self.session.id, patience=patience
        )
        return self.session._connection.ask(request)

    def _look(self, call: str, patience: float = 0.0, **query: Any) -> Any:
        request = requests.get(self._path(call), subject=self.session.id, patience=patience, **query)
        return self.session._connection.ask(request)

    def wait(self, timeout: Optional[Span] = None) -> Result:
        """Waits for the run's end.

        Raises:
            StillRunningError: after ``timeout``, or when it waits for input. The run goes on.
        """
        deadline = None if timeout is None else time.monotonic() + seconds(timeout)
        while True:
            left = WAIT if deadline is None else min(WAIT, max(0.0, deadline - time.monotonic()))
            answer = self._look("", patience=left, wait=f"{left:.3f}")
            if not answer.get("running"):
                return Result.of(answer, self.command, self.session.id)
            is_late = deadline is not None and time.monotonic() >= deadline
            if is_late or answer.get("waiting_for_input"):
                raise StillRunningError(self.number, Output.of(answer))

    def is_running(self) -> bool:
        return bool(self._look("").get("running"))

    def output(self, cursor: Optional[str] = None, wait: Optional[Span] = None) -> Output:
        """What it has written after ``cursor``, or all of it. With ``wait``, waits for something new.

        >>> run = session.background("echo begun; sleep 100")
        >>> run.output(wait=10).stdout
        'begun\\n'
        >>> run.interrupt()
        """
        patience = 0.0 if wait is None else seconds(wait)
        answer = self._look("/output", patience, cursor=cursor or "0-0", wait=wire(wait))
        if "phase" in answer and "running" not in answer:
            answer = {**answer, "running": answer["phase"] in ("queued", "running")}
        return Output.of(answer)

    def stream(self) -> Stream:
        """Its events, from the first one on."""
        session = self.session
        return Stream(
            session._connection, session._path, session.id, run=self.number, command=self.command
        )

    def input(self, data: Union[str, bytes] = "", *, eof: bool = False) -> None:
        """Writes to its stdin, if it was begun with ``interactive=True`` or has a terminal.

        >>> run = session.background("read name; echo hello $name", interactive=True)
        >>> run.input("Ann\\n")
        >>> run.wait().stdout
        'hello Ann\\n'
        """
        body: "dict[str, Any]" = {"data": data, "eof": eof or None}
        if isinstance(data, bytes):
            body.update(data=base64.b64encode(data).decode(), encoding="base64")
        self._ask("/input", body)

    def signal(self, name: str = "TERM") -> int:
        """Signals what it has in the foreground, or in the background when it has ended.
        The number of processes that got it."""
        return int(self._ask("/signal", {"signal": name})["processes"])

    def interrupt(self) -> None:
        """Makes it end, as Ctrl-C would, and harder when that does not help. The session is kept."""
        self.session.interrupt(self.number)

    def screen(
        self,
        *,
        wait_for: Optional[str] = None,
        settle: Optional[Span] = None,
        wait: Optional[Span] = None,
    ) -> Screen:
        """What its terminal shows, when ``wait_for`` (a regular expression) is there, or when it
        has stood still for ``settle``. Waits for 10 seconds at the most, or for ``wait``."""
        answer = self._look(
            "/screen", _patience(wait), wait_for=wait_for, settle=wire(settle), wait=wire(wait)
        )
        return Screen.of(answer)

    def picture(self, format: str = "png") -> bytes:
        """Its terminal as a picture, ``png`` or ``svg``."""
        request = requests.get(self._path("/screen"), subject=self.session.id, format=format)
        return self.session._connection.send(request).content

    def keys(
        self,
        keys: str,
        *,
        wait_for: Optional[str] = None,
        settle: Optional[Span] = None,
        wait: Optional[Span] = None,
    ) -> Screen:
        """Types on its terminal: text, and keys by name (``<Enter>``, ``<C-c>``, ``<Up>``).
        The screen, when it has stood still, or as ``wait_for`` and ``settle`` say.

        >>> run = session.background("python3 -q", terminal=True)
        >>> screen = run.keys("6 * 7<Enter>", wait_for="^42")
        >>> "42" in screen.lines
        True
        >>> screen = run.keys("<C-d>")
        """
        body = {"keys": keys, "wait_for": wait_for, "settle": wire(settle), "wait": wire(wait)}
        return Screen.of(self._ask("/keys", body, _patience(wait)))

    def resize(self, rows: int, columns: int) -> None:
        request = requests.post(
            self._path("/resize"),
            {"rows": rows, "cols": columns},
            subject=self.session.id,
            repeat=Repeat.SAFE,
        )
        self.session._connection.ask(request)


def _patience(wait: Optional[Span]) -> float:
    return 10.0 if wait is None else seconds(wait)
