"""A warm ``:`` through the SDK beside plain HTTP, in turns: both meet the same noise.

The server is the local one, in a state directory of its own. Also: how long the import takes, and a
sandbox of 2,000 files to its first answer, where the server has sandboxes.

    SESSILE_BIN=target/release/sessile python sdk/python/bench/warm.py
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

MOST = 0.5
"""Milliseconds that the SDK may take more than plain HTTP, at the median."""

IMPORT = 150.0
FILES, FIRST_ANSWER = 2000, 150.0
ROUNDS, CALLS = 30, 50


class Unix(http.client.HTTPConnection):
    """Python's own client, on the socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def import_time() -> float:
    program = "import time; t = time.perf_counter(); import sessile; print((time.perf_counter() - t) * 1000)"
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(7))


def warm(endpoint: str) -> Dict[str, List[float]]:
    from sessile import AsyncSession, Session

    session = Session()
    plain = Unix(endpoint)
    path, body = f"/v1/sessions/{session.id}/exec", b'{"command":":"}'
    headers = {"Content-Type": "application/json"}

    def bare() -> object:
        plain.request("POST", path, body, headers)
        return json.loads(plain.getresponse().read())

    loop = asyncio.new_event_loop()
    other = loop.run_until_complete(AsyncSession.attach(session.id))
    times: Dict[str, List[float]] = {"plain HTTP": [], "Session": [], "AsyncSession": []}

    async def through_async(count: int) -> List[float]:
        found: List[float] = []
        for _ in range(count):
            begun = time.perf_counter()
            await other.exec(":")
            found.append((time.perf_counter() - begun) * 1000)
        return found

    for turn in range(ROUNDS + 1):
        here = {
            "plain HTTP": [timed(bare) for _ in range(CALLS)],
            "Session": [timed(lambda: session.exec(":")) for _ in range(CALLS)],
            "AsyncSession": loop.run_until_complete(through_async(CALLS)),
        }
        if turn:
            for name, found in here.items():
                times[name].extend(found)
    loop.close()
    session.close()
    return times


def sandbox(root: Path) -> float:
    from sessile import Sandbox

    tree = root / "tree"
    for number in range(FILES):
        place = tree / f"d{number % 40}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}.txt").write_text(f"{number}\n")

    def first_answer() -> None:
        with Sandbox.from_local(tree) as made:
            found.append(timed_run(made))

    def timed_run(made: Sandbox) -> float:
        assert made.run("ls | wc -l").stdout.strip() == "40"
        return (time.perf_counter() - begun) * 1000

    found: List[float] = []
    for _ in range(5):
        begun = time.perf_counter()
        first_answer()
    return statistics.median(found)


def main() -> int:
    root = Path(tempfile.mkdtemp(prefix="sessile-bench-"))
    os.environ["XDG_STATE_HOME"] = str(root)
    os.environ.pop("SESSILE_URL", None)
    from sessile import Client, SandboxError

    imported = import_time()
    print(f"import: {imported:.0f} ms (at most {IMPORT:.0f})")
    client = Client()
    client.run(":")
    times = warm(client.endpoint)
    base = statistics.median(times["plain HTTP"])
    is_slow = imported > IMPORT
    for name, found in times.items():
        median = statistics.median(found)
        is_slow |= median - base > MOST
        print(f"warm ':' {name}: {median:.3f} ms (+{median - base:.3f})")
    try:
        first = sandbox(root)
        print(f"Sandbox.from_local of {FILES} files to the first answer: {first:.0f} ms (at most {FIRST_ANSWER:.0f})")
        is_slow |= first > FIRST_ANSWER
    except SandboxError as error:
        print(f"no sandbox here: {error}")
    client.end_all()
    started = subprocess.check_output([os.environ["SESSILE_BIN"], "serve", "--local", "--background"])
    os.kill(json.loads(started)["pid"], signal.SIGTERM)
    shutil.rmtree(root, ignore_errors=True)
    print("too slow" if is_slow else "within what was promised")
    return 1 if is_slow else 0


if __name__ == "__main__":
    sys.exit(main())
