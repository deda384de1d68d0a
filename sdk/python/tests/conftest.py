"""A real server for all tests, in a directory and a state directory of their own."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any, Iterator, NoReturn, Optional, Sequence

import pytest

import sessile

REPOSITORY = Path(__file__).resolve().parents[3]


def binary() -> str:
    given = os.environ.get("SESSILE_BIN") or str(REPOSITORY / "target/debug/sessile")
    assert os.access(given, os.X_OK), f"{given} is not there; build it, or set SESSILE_BIN"
    return given


BINARY = binary()


def unavailable(error: sessile.UnavailableError) -> NoReturn:
    """Passes over what this machine cannot enforce, by its name; in CI that is a failure."""
    if os.environ.get("CI") == "true":
        raise error
    pytest.skip(str(error))


def framework(name: str) -> Any:
    """A framework that the SDK has tools for. The oldest Python is tested without them."""
    if os.environ.get("SESSILE_TEST_FRAMEWORKS"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


class Server:
    """``sessile serve`` on a port of this machine, which can be killed and started again."""

    def __init__(self, directory: Path, args: Sequence[str] = ()) -> None:
        self.directory = directory
        self.args = list(args)
        self.state = directory / "state"
        self.process: Optional["subprocess.Popen[str]"] = None
        # Held, so that nobody else is given the port while the server is not there. Both have
        # SO_REUSEADDR, and only one of them listens.
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.port: int = self.held.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    @property
    def environment(self) -> "dict[str, str]":
        return {**os.environ, "XDG_STATE_HOME": str(self.state)}

    def start(self) -> None:
        listen = f"127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", listen, "--max-sessions", "2000", *self.args],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert self.url in line, f"the server said {line!r}"

    @property
    def token(self) -> str:
        shown = subprocess.run(
            [BINARY, "token", "show", "--raw"], cwd=self.directory, env=self.environment, stdout=subprocess.PIPE
        )
        return shown.stdout.decode().strip()

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        end = [BINARY, "end", "--all"]
        subprocess.run(end, cwd=self.directory, env=self.environment, stdout=subprocess.DEVNULL)
        assert self.process is not None
        self.process.terminate()
        self.process.wait()
        self.held.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.end()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Server]:
    """One that may be killed."""
    server = Server(tmp_path)
    yield server
    server.end()


def local_server(state: Path) -> "dict[str, Any]":
    """Finds or starts the local server with this state directory."""
    call = [BINARY, "serve", "--local", "--background"]
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    said = subprocess.run(call, env=environment, stdout=subprocess.PIPE, check=True).stdout
    found: "dict[str, Any]" = json.loads(said)
    return found


def end_local(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the local server and all its sessions."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.delenv("SESSILE_URL", raising=False)
    sessile.Client().end_all()
    os.kill(local_server(state)["pid"], signal.SIGKILL)


@pytest.fixture(scope="session")
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    state = tmp_path_factory.mktemp("state")
    yield state
    with pytest.MonkeyPatch.context() as patch:
        end_local(state, patch)


@pytest.fixture(autouse=True)
def surroundings(state_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs find without being told: a local server, in a state directory of the tests."""
    monkeypatch.delenv("SESSILE_URL", raising=False)
    monkeypatch.delenv("SESSILE_TOKEN", raising=False)
    monkeypatch.setenv("SESSILE_BIN", BINARY)
    monkeypatch.setenv("XDG_STATE_HOME", str(state_home))
    monkeypatch.setenv("XDG_DATA_HOME", str(state_home / "data"))
    monkeypatch.chdir(tmp_path)


_tokens: "dict[str, str]" = {}


def token_of(server: Server) -> str:
    if server.url not in _tokens:
        _tokens[server.url] = server.token
    return _tokens[server.url]
