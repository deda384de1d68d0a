"""Where agents work: on this machine, or at a server."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Optional, Type, TypeVar, Union

__all__ = ["CloudRuntime", "Debug", "LocalRuntime", "Runtime"]

Debug = Union[bool, Callable[[str], object]]
"""True writes a line about each request to stderr; a function is given it."""

C = TypeVar("C")


class Runtime:
    """What an agent needs of the place where it works."""

    def __init__(self, arguments: Dict[str, Any], debug: Debug) -> None:
        self._arguments = {**arguments, "debug": _to_stderr if debug is True else debug or None}
        self._clients: Dict[Any, Any] = {}

    def _client(self, kind: Type[C]) -> C:
        """Its client, sync or async, made when it is first needed."""
        if kind not in self._clients:
            self._clients[kind] = kind(**self._arguments)
        client: C = self._clients[kind]
        return client


class LocalRuntime(Runtime):
    """Agents on this machine. They belong to the user's own server, so that every program of the
    user finds them again."""

    def __init__(self, *, debug: Debug = False) -> None:
        super().__init__({"is_local": True}, debug)


class CloudRuntime(Runtime):
    """Agents at a Sessile server.

    Args:
        url: where it is; SESSILE_URL, if not given.
        token: what it lets this program do; SESSILE_TOKEN, if not given.
        verify: as httpx takes it.
        debug: True for a line about each request on stderr, or a function that is given it.
    """

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, *, verify: Any = True, debug: Debug = False
    ) -> None:
        super().__init__({"url": url, "token": token, "verify": verify}, debug)


def _to_stderr(line: str) -> None:
    print(f"sessile: {line}", file=sys.stderr)
