"""Where the server is: on this machine, or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union
from urllib.parse import urlsplit

from ..errors import InvalidConfigurationError


@dataclass(frozen=True)
class Local:
    """The user's own server, on a Unix socket. It is started when it is not there."""

    socket: str

    @property
    def shown(self) -> str:
        return self.socket


@dataclass(frozen=True)
class Remote:
    url: str
    token: Optional[str]
    verify: Any = True

    @property
    def shown(self) -> str:
        return self.url


Endpoint = Union[Local, Remote]


def remote(url: str, token: Optional[str], verify: Any = True) -> Remote:
    """
    >>> remote("localhost:7377/", None).url
    'http://localhost:7377'
    """
    full = url if "://" in url else "http://" + url
    parts = urlsplit(full)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidConfigurationError(
            f"{url!r} is not the address of a server", hint="it looks like https://host:7377"
        )
    return Remote(full.rstrip("/"), token, verify)


def url_of(endpoint: Optional[str], secure: bool) -> Optional[str]:
    """A server by AgentFense's words for it.

    >>> url_of("example.org:7377", True), url_of("http://localhost:7377", False), url_of(None, True)
    ('https://example.org:7377', 'http://localhost:7377', None)
    """
    if endpoint is None or "://" in endpoint:
        return endpoint
    return f"{'https' if secure else 'http'}://{endpoint}"


def choose(
    url: Optional[str], token: Optional[str], verify: Any, environment: Mapping[str, str], socket: str
) -> Endpoint:
    """What was passed comes first, then SESSILE_URL and SESSILE_TOKEN, then this machine."""
    address = url or environment.get("SESSILE_URL")
    if address:
        return remote(address, token or environment.get("SESSILE_TOKEN"), verify)
    return Local(socket)
