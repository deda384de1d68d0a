"""What a session can be asked, and what comes back."""

from __future__ import annotations

import asyncio
import base64
import os
import pickle
from datetime import timedelta
from pathlib import Path
from typing import List

import pytest

import sessile
from sessile import AsyncSession, Closed, Exited, Session, Started, Stderr, Stdout


def test_state_lasts_from_run_to_run_in_each_language() -> None:
    with Session() as session:
        session.exec("cd /tmp; x=41")
        assert session.exec("pwd; echo $((x+1))").stdout == "/tmp\n42\n"
        session.python("import math; y = math.pi")
        assert session.eval("round(y, 2)").result == "3.14"
        session.node("let z = [1]")
        assert session.node("z.concat(2)").result == "[ 1, 2 ]"


def test_a_session_speaks_the_language_that_it_was_started_with() -> None:
    with Session("python") as session:
        assert session.exec("1 + 1").result == "2"
    with Session(shell="sh") as session:
        assert session.exec("echo $0").stdout == "sh\n"
    with Session(shell="/bin/sh") as session:
        session.write_file("stage.sh", "stage=test")
        assert session.exec("source ./stage.sh; echo $stage").stdout == "test\n"
    with pytest.raises(sessile.InvalidConfigurationError, match="there are bash, sh"):
        Session("perl")


def test_a_result_says_everything_about_its_run() -> None:
    with Session() as session:
        result = session.exec("echo out; echo err >&2; exit 3")
        assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
        assert (result.success, result.run, result.language) == (False, 1, "bash")
        assert result.command == "echo out; echo err >&2; exit 3"
        assert result.output == "out\n\nerr\n"
        assert isinstance(result.duration, timedelta)
        failed = session.python("1/0")
        assert failed.error == sessile.CodeError("ZeroDivisionError", "division by zero")


def test_results_name_the_jobs_that_have_ended() -> None:
    with Session() as session:
        command = "(exit 3) & while kill -0 $! 2>/dev/null; do :; done"
        results = [session.exec(command), session.background(command).wait()]
        stream = session.stream(command)
        results += [event.result for event in stream if isinstance(event, Exited) and event.result]
        assert len(results) == 3
        for result in results:
            (job,) = result.jobs_ended
            assert job == sessile.EndedJob(job.pid, result.run, "(exit 3)", 3) and job.failed
            assert "jobs_ended=" in repr(result)
        assert session.eval(command, language="bash").jobs_ended[0].exit_code == 3
        assert session.exec("echo").jobs_ended == ()


def test_check_raises_with_the_result() -> None:
    with Session() as session:
        assert session.exec(":", check=True).success
        with pytest.raises(sessile.CommandExecutionError) as failed:
            session.exec("echo why >&2; exit 7", check=True)
        assert failed.value.exit_code == 7 and failed.value.stderr == "why\n"
        assert failed.value.result is not None
        again = pickle.loads(pickle.dumps(failed.value))
        assert again.exit_code == 7 and str(again) == str(failed.value)


def test_a_run_that_takes_too_long_is_interrupted_and_the_session_kept() -> None:
    with Session() as session:
        session.exec("x=1")
        result = session.exec("echo begun; sleep 100", timeout="2s")
        assert result.timed_out and result.stdout == "begun\n"
        with pytest.raises(sessile.CommandTimeoutError) as late:
            result.check()
        assert late.value.result is result and isinstance(late.value, TimeoutError)
        assert session.exec("echo $x").stdout == "1\n"


def test_bytes_that_are_no_text_arrive_as_they_are() -> None:
    with Session() as session:
        result = session.exec(r"printf 'a\xff\n'")
        assert result.stdout_bytes == b"a\xff\n" and result.stdout == "a\ufffd\n"


def test_rich_values_show_as_themselves_in_a_notebook() -> None:
    with Session() as session:
        rich = session.python("class Bold:\n  def _repr_html_(self): return '<b>hi</b>'\nBold()")
        bundle = rich._repr_mimebundle_()
        assert bundle["text/html"] == "<b>hi</b>" and "Bold object" in bundle["text/plain"]
        assert session.exec("echo hi; exit 2")._repr_mimebundle_()["text/plain"] == "hi\n[exit code 2]"


def test_events_come_as_they_happen_with_types() -> None:
    with Session() as session:
        stream = session.stream("echo out; echo err >&2; exit 3")
        first, *written, exited, closed = list(stream)
        assert first == Started(1) and closed == Closed(1) and isinstance(exited, Exited)
        assert {type(event) for event in written} == {Stdout, Stderr}
        assert stream.run == 1 and stream.result.exit_code == 3
        # The first output is there while the run still waits.
        stream = session.stream("echo begun; read line < pipe; echo $line")
        session.exec("mkfifo pipe", language="sh")
        for event in stream:
            if isinstance(event, Stdout):
                assert event.text == "begun\n"
                break
        session.exec("echo go > pipe", language="sh")
        assert stream.text() == "go\n"


def test_a_run_in_the_background_is_waited_for_and_read() -> None:
    with Session() as session:
        run = session.background("echo one; read line; echo got $line", interactive=True)
        assert run.output(wait=60).stdout == "one\n"
        with pytest.raises(sessile.StillRunningError) as waits:
            run.wait(timeout=60)
        assert waits.value.waiting_for_input and waits.value.output.stdout == "one\n"
        run.input(b"two\n")
        assert run.wait().stdout == "one\ngot two\n"
        assert not run.is_running()
        assert session.get_run(run.number).wait().exit_code == 0
        slow = session.background("sh -c 'echo there; exec sleep 1000'")
        assert slow.output(wait=60).stdout == "there\n"
        with pytest.raises(sessile.StillRunningError):
            slow.wait(timeout=0.05)
        assert slow.signal("TERM") == 1
        assert slow.wait().exit_code == 143


def test_a_terminal_is_typed_on_and_seen() -> None:
    with Session() as session:
        run = session.background("cat", terminal={"rows": 5, "cols": 40})
        screen = run.keys("hello<Enter>", wait_for="hello\nhello", wait=60)
        assert screen.lines[:2] == ["hello", "hello"] and screen.size == (5, 40)
        run.resize(10, 50)
        assert run.screen().size == (10, 50)
        assert run.picture()[:4] == b"\x89PNG"
        run.keys("<C-d>")
        assert run.wait().exit_code == 0


def test_what_a_session_has_can_be_looked_at() -> None:
    with Session(env={"STAGE": "test"}, name=None) as session:
        session.exec("cd /usr; f() { :; }")
        state = session.state()
        assert state.working_dir == "/usr" and state.env_vars["STAGE"] == "test"
        assert "f" in state.functions
        session.python("import json; n = 1")
        assert session.state().kernels["python"]["imports"] == ["json"]
        history = session.history()
        assert [(row.run, row.language) for row in history] == [(1, "bash"), (2, "python")]
        session.exec("sleep 100 & :")
        (job,) = session.jobs()
        assert job.state == "running" and job.run == 3
        assert session.signal_job(job.pid) == 1
        info = session.info()
        assert info.id == session.id and info.execution_count == 3 and info.created_at is not None
        session.rename("renamed")
        assert Session.attach("renamed").id == session.id


def test_a_session_goes_sideways_and_back() -> None:
    with Session("python", auto=5) as session:
        session.exec("x = 1")
        with session.fork(name="branch") as fork:
            fork.exec("x = 2")
            assert fork.eval("x").result == "2"
        forks = session.fork_many(2)
        assert len({fork.id for fork in forks}) == 2
        for fork in forks:
            fork.close()
        session.exec("x = 3")
        assert session.undo().undone == (2,)
        assert session.eval("x").result == "1"
        session.checkpoint("here")
        session.exec("x = 4")
        session.rewind("here")
        assert session.eval("x").result == "1"
        assert "here" in [point.name for point in session.checkpoints()]
        assert session.drop_checkpoint("here") == ["here"]
        with pytest.raises(sessile.CheckpointError) as missing:
            session.rewind("nowhere")
        assert missing.value.code == "checkpoint_not_found"


def test_a_session_is_saved_and_restored(tmp_path: Path) -> None:
    with Session("python") as session:
        session.exec("import socket; x = [1, 2]; s = socket.socket()")
        saved = session.save(tmp_path / "work.sessile")
        assert saved.bytes == (tmp_path / "work.sessile").stat().st_size
        assert saved.as_of_run == 1 and saved.left == 1
    with Session.restore(tmp_path / "work.sessile") as again:
        assert again.eval("x").result == "[1, 2]"
    (tmp_path / "half.sessile").write_bytes((tmp_path / "work.sessile").read_bytes()[:100])
    with pytest.raises(sessile.InvalidConfigurationError) as bad:
        Session.restore(tmp_path / "half.sessile")
    assert bad.value.code == "bad_file"


def test_an_attached_session_is_left_alive() -> None:
    with Session() as session:
        session.exec("x=5")
        with Session.attach(session.id) as again:
            assert again.exec("echo $x").stdout == "5\n"
        assert session.exec("echo $x").stdout == "5\n"
    assert session.closed


def test_leaving_the_block_ends_what_the_session_started() -> None:
    with Session() as session:
        session.exec("sleep 1000 & echo $! > pid")
        pid = int(session.exec("cat pid").stdout)
    assert not Path(f"/proc/{pid}").exists()
    assert session.client.session_info(session.id).status == "terminated"


def test_what_all_runs_of_a_session_do_is_told() -> None:
    with Session() as session:
        session.exec("echo before")
        events = session.events(tail=1)
        assert next(events) == Started(1)
        assert next(events) == Stdout(1, "before\n", b"before\n")
        events.close()


def test_a_client_lists_runs_and_answers() -> None:
    client = sessile.Client()
    with client.session(name="listed") as session:
        assert session.id in [info.id for info in client.sessions(status="active")]
        assert client.attach("listed").id == session.id
        assert any(row["session_id"] == session.id for row in client.top())
    assert client.run("sort; exit 3", stdin="b\na\n").stdout == "a\nb\n"
    assert client.tool({"action": "exec", "command": "echo hi"})["stdout"] == "hi\n"
    client.close()
    with pytest.raises(sessile.ConnectionError, match="closed"):
        client.run(":")


def test_async_is_the_same() -> None:
    async def program() -> None:
        session = await AsyncSession()
        async with session:
            await session.exec("x=1")
            assert (await session.exec("echo $x")).stdout == "1\n"
            events = [type(event).__name__ async for event in session.stream("echo hi")]
            assert events == ["Started", "Stdout", "Exited", "Closed"]
            run = await session.background("echo done")
            assert (await run.wait()).stdout == "done\n"
            fork = await session.fork()
            assert (await fork.exec("echo $x")).stdout == "1\n"
            await fork.close()
        with pytest.raises(sessile.SessionClosedError):
            await session.exec(":")
        with pytest.raises(RuntimeError, match="await AsyncSession"):
            await AsyncSession().exec(":")

    asyncio.run(program())
    # Another loop does not get the connections of the one before.
    asyncio.run(program())


def test_runs_in_several_sessions_go_on_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other one."""
    for name in ("there", "back"):
        os.mkfifo(tmp_path / name)

    async def program() -> List[str]:
        async with AsyncSession() as one, AsyncSession() as two:
            ask, answer = "echo asked > there; cat back", "cat there; echo answered > back"
            both = await asyncio.gather(one.exec(ask, timeout=0), two.exec(answer, timeout=0))
            return [each.stdout for each in both]

    assert asyncio.run(program()) == ["answered\n", "asked\n"]


def test_pictures_come_as_base64() -> None:
    code = "class Pic:\n  def _repr_png_(self): return b'\\x89PNG'\nPic()"
    with Session("python") as session:
        data = session.exec(code).data
    assert base64.b64decode(data["image/png"]) == b"\x89PNG"
