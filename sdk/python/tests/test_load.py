"""Many sessions, many threads, processes that fork, and a server that dies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import List

from conftest import Server, token_of
from sessile import AsyncClient, Client, Session

# SESSILE_SDK_SESSIONS=1000 is what was promised; this is what fits between other tests.
SESSIONS = int(os.environ.get("SESSILE_SDK_SESSIONS", "100"))
THREADS = 64


def test_many_sessions_of_one_asyncio_program_each_have_their_own_answers() -> None:
    async def program() -> List[str]:
        async with AsyncClient() as client:
            numbers = range(SESSIONS)
            sessions = await asyncio.gather(*(client.session(env={"N": str(number)}) for number in numbers))
            await asyncio.gather(*(session.exec("n=$N") for session in sessions))
            results = await asyncio.gather(*(session.exec("echo $n") for session in sessions))
            await asyncio.gather(*(session.close() for session in sessions))
            return [result.stdout for result in results]

    assert asyncio.run(program()) == [f"{number}\n" for number in range(SESSIONS)]


def test_sessions_that_all_run_long_do_not_keep_an_interrupt_waiting() -> None:
    """More runs than connections: what interrupts them still gets through."""

    async def program() -> None:
        async with AsyncClient() as client, client.session() as session:
            waiting = [asyncio.create_task(session.exec("sleep 1000", timeout=0)) for _ in range(300)]
            while len(await session.runs()) < 200:
                await asyncio.sleep(0)
            ended = asyncio.create_task(session.close())
            done = await asyncio.gather(*waiting, return_exceptions=True)
            await ended
            assert all(isinstance(each, Exception) for each in done)

    asyncio.run(asyncio.wait_for(program(), 300))


def test_64_threads_share_one_client() -> None:
    client = Client()
    session = client.session()

    def count(number: int) -> List[str]:
        return [session.exec(f"echo {number}-{turn}").stdout for turn in range(5)]

    with ThreadPoolExecutor(THREADS) as threads:
        answers = list(threads.map(count, range(THREADS)))
    assert answers == [[f"{number}-{turn}\n" for turn in range(5)] for number in range(THREADS)]
    assert session.info().execution_count == THREADS * 5
    session.close()


def test_a_forked_process_goes_on_with_the_client_and_so_does_its_parent() -> None:
    with Session() as session:
        session.exec("x=1")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                said = "".join(session.exec(f"echo c{n}").stdout for n in range(20))
                os.write(writing, said.encode())
            finally:
                os._exit(0)
        os.close(writing)
        mine = "".join(session.exec(f"echo p{n}").stdout for n in range(20))
        with os.fdopen(reading) as answer:
            theirs = answer.read()
        os.waitpid(child, 0)
    assert mine == "".join(f"p{n}\n" for n in range(20))
    assert theirs == "".join(f"c{n}\n" for n in range(20))


def test_a_server_that_is_killed_loses_no_run_and_repeats_none(mortal: Server) -> None:
    client = Client(mortal.url, token_of(mortal))
    workers, turns = 8, 25
    answers: List[List[str]] = [[] for _ in range(workers)]
    progress = threading.Semaphore(0)

    def work(number: int) -> None:
        session = client.session()
        for _ in range(turns):
            answers[number].append(session.exec("n=$((n+1)); sleep 0.01; echo $n").stdout)
            progress.release()
        session.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        for _ in range(workers * turns // 5):
            progress.acquire()
        mortal.kill()
        mortal.start()
    for thread in threads:
        thread.join()
    assert answers == [[f"{turn}\n" for turn in range(1, turns + 1)]] * workers


def test_a_stream_goes_on_where_it_was_when_the_server_is_killed(mortal: Server) -> None:
    client = Client(mortal.url, token_of(mortal))
    session = client.session()
    # One for each step: a reader that opens a FIFO before its last writer has closed it reads the end.
    session.exec("mkfifo go1 go2 go3", language="sh")
    command = "for i in 1 2 3; do echo $i; read line < go$i; done"
    heard = ""
    for event in session.stream(command, timeout=0):
        text = getattr(event, "text", "")
        heard += text
        if text:
            mortal.kill()
            mortal.start()
            with (mortal.directory / f"go{text.strip()}").open("w") as gate:
                gate.write("\n")
    assert heard == "1\n2\n3\n"
    session.close()


def test_a_program_that_is_killed_leaves_its_run_to_be_found() -> None:
    program = (
        "from sessile import Session; s = Session(name='left'); r = s.background('sleep 0.3; echo done');"
        "print(r.number, flush=True); import os; os.kill(os.getpid(), 9)"
    )
    process = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    session = Session.attach("left")
    assert session.get_run(int(process.stdout)).wait().stdout == "done\n"
    session.close()


def test_a_program_that_is_killed_takes_along_what_was_not_meant_to_last() -> None:
    program = (
        "from sessile import Session; a = Session(); b = Session(keep=True); print(a.id, b.id, flush=True);"
        "input(); import os; os.kill(os.getpid(), 9)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    ends, lasts = [Session.attach(id) for id in process.stdout.readline().split()]
    events = ends.events()
    process.communicate("go\n")
    # The stream is over when the session is.
    assert [getattr(event, "name", "") for event in events][-1] == "ended"
    assert ends.info().status == "terminated"
    assert lasts.exec("echo there").stdout == "there\n"
    lasts.close()
