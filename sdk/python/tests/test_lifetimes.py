"""What ends with its program, and what is found again by the next server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Iterator, List

import pytest

import sessile
from conftest import Server, token_of
from sessile import Client, Session

PROGRAM = """
import os, sys
from sessile import Session
session = Session()
session.save("saved")
fork = session.fork()
of_fork = fork.fork()
restored = Session.restore("saved")
kept = [session.fork(keep=True), session.fork(name="lifetimes-named"), Session.restore("saved", keep=True)]
session.close()
fork.close()
for one in [of_fork, restored, *kept]:
    one.exec("sleep 1000 &")
    print(one.id, flush=True)
print("ready", flush=True)
sys.stdin.read() if sys.argv[1] == "killed" else None
"""


def lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        if line == "ready\n":
            return
        yield line.strip()


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_forks_and_restored_sessions_end_with_their_program_unless_they_are_kept(how: str) -> None:
    call = [sys.executable, "-c", PROGRAM, how]
    process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ids: List[str] = list(lines(process))
    assert len(ids) == 5
    if how == "killed":
        process.send_signal(signal.SIGKILL)
    process.communicate()
    for id in ids[:2]:
        wait_until_ended(id)
    for id in ids[2:]:
        with Session.attach(id) as kept:
            assert len(kept.jobs()) == 1
            kept.close()


def wait_until_ended(id: str) -> None:
    """The stream of its events ends with it."""
    try:
        for _ in Session.attach(id).events():
            pass
    except sessile.SessionClosedError:
        pass
    with pytest.raises(sessile.SessionClosedError):
        Session.attach(id)


def test_a_command_without_a_session_outlives_the_server(mortal: Server) -> None:
    """Its answer comes from the next one, and it has run once."""
    client = Client(mortal.url, token_of(mortal))
    os.mkfifo(mortal.directory / "begun")
    os.mkfifo(mortal.directory / "gate")
    client.run(":")
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.run, "echo once >> times; echo > begun; cat gate; echo done", 60)
        (mortal.directory / "begun").read_text()
        mortal.kill()
        mortal.start()
        (mortal.directory / "gate").write_text("open\n")
        assert answer.result().stdout == "open\ndone\n"
    assert (mortal.directory / "times").read_text() == "once\n"
    client.close()
