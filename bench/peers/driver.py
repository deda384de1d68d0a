"""What all drivers of peers have in common.

A driver is a process that the bench starts. It reads an order per line on
stdin, each a JSON object with "do", and answers each with a line of JSON on
stdout. Times are taken in here, around the calls that a user of the peer would
make, so that the way to the bench costs nothing.
"""

import asyncio
import base64
import json
import os
import sys
import time
from dataclasses import dataclass

# Seconds without a run, before an idle session's memory is measured.
IDLE = 12


@dataclass
class Answer:
    """What a peer says of a command."""

    output: bytes
    # The exit status; None where the peer does not tell.
    status: int | None = None
    # It took too long, and was interrupted in the way that the peer has for it.
    timed_out: bool = False
    # The peer refused to run it.
    refused: bool = False


class Peer:
    """A runtime with sessions. Each driver has one."""

    name = ""
    # How many of the sessions that are opened next are used at once.
    at_once = 1

    async def start(self):
        """Once, before all sessions."""

    async def open(self):
        """A new session."""
        raise NotImplementedError

    async def run(self, session, code, timeout=None) -> Answer:
        raise NotImplementedError

    async def status(self, session, code, timeout=None) -> Answer:
        """The same with the exit status, if that takes more than a run."""
        return await self.run(session, code, timeout)

    async def everything(self, session, code, timeout=None) -> Answer:
        """The same with all of its output, if that takes more than a run."""
        return await self.status(session, code, timeout)

    async def stream(self, session, code) -> Answer:
        """The same, read as it comes, where the peer has a way for that."""
        return await self.everything(session, code)

    async def close(self, session):
        raise NotImplementedError

    async def stop(self):
        """Once, after all sessions."""

    def processes(self):
        """The sessions' processes, and the one that they live with: this one,
        unless there is a server."""
        return [os.getpid(), *descendants(os.getpid())]


def descendants(pid):
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as children:
                for child in children.read().split():
                    found += [int(child), *descendants(int(child))]
        except OSError:
            pass
    return found


def proportional_kilobytes(pid):
    """PSS: pages that processes share are divided among them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


class Driver:
    def __init__(self, peer):
        self.peer = peer
        self.sessions = []

    async def answer(self, order):
        return await getattr(self, order.pop("do"))(**order)

    async def start(self):
        await self.peer.start()
        return {"name": self.peer.name}

    async def stop(self):
        await self.close()
        await self.peer.stop()
        return {}

    async def cold(self, code):
        """A new session, to its first answer."""
        before = time.perf_counter()
        session = await self.peer.open()
        await self.peer.status(session, code)
        took = time.perf_counter() - before
        await self.peer.close(session)
        return {"seconds": took}

    async def open(self, sessions):
        """Has this many sessions."""
        self.peer.at_once = sessions
        while len(self.sessions) < sessions:
            missing = min(8, sessions - len(self.sessions))
            self.sessions += await asyncio.gather(*(self.peer.open() for _ in range(missing)))
        return {}

    async def close(self):
        for session in self.sessions:
            await self.peer.close(session)
        self.sessions, self.peer.at_once = [], 1
        return {}

    async def loop(self, code, sessions, seconds, expect):
        """Sessions that are busy at once, each with the next run when it has the last."""
        await self.open(sessions)
        took = []
        end = time.perf_counter() + seconds

        async def busy(session):
            while (before := time.perf_counter()) < end:
                answer = await self.peer.status(session, code)
                took.append(time.perf_counter() - before)
                check(answer, expect)

        start = time.perf_counter()
        await asyncio.gather(*(busy(session) for session in self.sessions[:sessions]))
        return {"took": took, "elapsed": time.perf_counter() - start}

    async def output(self, code, size):
        """Much output, to its last byte."""
        session = await self.peer.open()
        try:
            before = time.perf_counter()
            answer = await self.peer.stream(session, code)
            took = time.perf_counter() - before
            got = len(answer.output.replace(b"\r\n", b"\n"))
            return {"seconds": took, "complete": got == size, "got": got}
        finally:
            await self.peer.close(session)

    async def memory(self, code, sessions):
        """Kilobytes a session: all processes, with what the service itself has."""
        await self.open(sessions)
        for session in self.sessions:
            await self.peer.run(session, code)
        # Some give memory back when they have been idle for a while.
        await asyncio.sleep(IDLE)
        total = sum(proportional_kilobytes(pid) for pid in self.peer.processes())
        return {"kilobytes": total / sessions}

    async def case(self, prepare, command, timeout, then):
        """A command that is hard, and whether the session still knows what it knew."""
        session = await self.peer.open()
        try:
            await self.peer.run(session, prepare)
            before = time.perf_counter()
            answer = await failsafe(self.peer.everything(session, command, timeout), timeout)
            took = time.perf_counter() - before
            after = await failsafe(self.peer.run(session, then, timeout), timeout)
        finally:
            try:
                await asyncio.wait_for(self.peer.close(session), 5)
            except Exception:
                pass
        return {"took": took, "answer": shown(answer), "after": shown(after)}


def check(answer, expect):
    # Peers may say something besides, such as that their history is locked.
    if expect.encode() not in answer.output:
        raise RuntimeError(f"wrong answer: {answer!r}")


async def failsafe(call, timeout):
    """The answer, or what went wrong instead."""
    try:
        # The peer has the time-out itself. This one is for peers that do not
        # come back from it.
        return await asyncio.wait_for(call, timeout + 10)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


def shown(answer):
    if isinstance(answer, str):
        return {"error": answer}
    short = answer.output if len(answer.output) <= 4096 else b""
    return {
        "length": len(answer.output),
        "output": base64.b64encode(short).decode(),
        "status": answer.status,
        "timed_out": answer.timed_out,
        "refused": answer.refused,
    }


def main(peer):
    # Libraries print what they like: the answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    driver = Driver(peer)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for line in sys.stdin:
        try:
            answer = loop.run_until_complete(driver.answer(json.loads(line)))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")
    loop.run_until_complete(driver.stop())
