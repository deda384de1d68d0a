"""The local server: found or started on demand, once, and nothing that is lost with it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Dict, Iterator, List, Set

import pytest

from conftest import Server, end_local, local_server, token_of
from sessile import Client, Session


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state directory in which no server is, and whose path is too long for a socket's."""
    state = tmp_path_factory.mktemp("fresh") / ("long" * 25)
    state.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    yield state
    with pytest.MonkeyPatch.context() as patch:
        end_local(state, patch)


def test_programs_and_threads_that_begin_at_once_share_one_server(fresh: Path) -> None:
    program = "from sessile import Session; s = Session(); print(s.exec('echo hi').stdout); s.close()"
    programs = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(4)]
    answers: List[str] = []
    client = Client()

    def begin() -> None:
        with client.session() as session:
            answers.append(session.exec("echo hi").stdout)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["hi\n"] * 8
    assert [each.communicate()[0] for each in programs] == [b"hi\n\n"] * 4
    socket = fresh / "sessile" / "local.sock"
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert client.endpoint == str(socket) and client.is_local
    pid = local_server(fresh)["pid"]
    assert servers(fresh) - {pid} == set()


def servers(state: Path) -> Set[int]:
    """Local servers that run with this state directory, without what they have forked."""
    parents: Dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            variables = (place / "environ").read_bytes().split(b"\0")
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        is_server = b"--local" in words and b"--background" not in words
        if is_server and f"XDG_STATE_HOME={state}".encode() in variables:
            parents[int(place.name)] = parent
    return {pid for pid, parent in parents.items() if parent not in parents}


def test_a_local_server_that_is_killed_comes_back_and_no_run_is_lost(fresh: Path) -> None:
    answers: List[List[str]] = [[] for _ in range(4)]
    progress = threading.Semaphore(0)
    client = Client()

    def work(number: int) -> None:
        with client.session() as session:
            for _ in range(20):
                answers[number].append(session.exec("n=$((n+1)); sleep 0.01; echo $n").stdout)
                progress.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        for _ in range(15):
            progress.acquire()
        os.kill(local_server(fresh)["pid"], signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert answers == [[f"{turn}\n" for turn in range(1, 21)]] * 4


def test_a_session_works_where_its_program_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/some/venv")
    with Session() as session:
        assert session.exec("pwd; echo $VIRTUAL_ENV").stdout == f"{tmp_path}\n/some/venv\n"
    with Session(workspace="/usr", env={"PATH": "/bin"}) as session:
        assert session.exec("pwd; echo $PATH").stdout == "/usr\n/bin\n"


def test_the_same_program_reaches_a_remote_server_by_one_argument(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(server.url, token_of(server)).session() as session:
        assert session.exec("pwd").stdout == f"{server.directory}\n"
    monkeypatch.setenv("SESSILE_URL", server.url)
    monkeypatch.setenv("SESSILE_TOKEN", token_of(server))
    with Session() as session:
        assert session.exec("pwd").stdout == f"{server.directory}\n"
        assert not session.client.is_local


def test_it_is_imported_without_what_takes_long() -> None:
    """How long it takes is measured by `cargo xtask bench python`; this is what it depends on."""
    program = "import sys; before = set(sys.modules); import sessile; print(*set(sys.modules) - before)"
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    slow = {"asyncio", "concurrent.futures", "email", "http.client", "httpx", "logging", "ssl", "subprocess"}
    assert not loaded & slow
    others = {name for name in loaded if not name.startswith("sessile")}
    assert len(others) < 120
