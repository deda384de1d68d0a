"""Agents: a scripted model over the real format, a real server and real sessions."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import sessile
from conftest import Server, token_of, unavailable
from scripted import Model, run as call
from sessile.agents import (
    Agent,
    AgentContinuity,
    AsyncAgent,
    CloudRuntime,
    Continued,
    Delta,
    Failure,
    Intent,
    LocalRuntime,
    OtherEvent,
    Reply,
    Retry,
    TaskFailedError,
    ToolCall,
    run,
    run_async,
    stream,
    stream_async,
)
from sessile.threads import Reader

KEY = "sk-test-0123456789"


class Place:
    """A server whose agents use a script."""

    def __init__(self, directory: Path, script: List[Any]) -> None:
        directory.mkdir()
        self.model = Model(script)
        (directory / "conf.toml").write_text(self.model.configuration)
        self.server = Server(directory, args=["--config", "conf.toml"])
        self.workspace = directory
        self.runtime = CloudRuntime(self.server.url, token_of(self.server))

    def agent(self, **options: Any) -> Agent:
        return Agent(**{"runtime": self.runtime, "workspace": str(self.workspace), **options})

    def async_agent(self, **options: Any) -> AsyncAgent:
        return AsyncAgent(**{"runtime": self.runtime, "workspace": str(self.workspace), **options})

    def end(self) -> None:
        self.server.end()
        self.model.close()


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Place]]:
    monkeypatch.setenv("MODEL_KEY", KEY)
    places: List[Place] = []

    def make(*script: Any) -> Place:
        places.append(Place(tmp_path / f"place{len(places)}", list(script)))
        return places[-1]

    yield make
    for place in places:
        place.end()


def test_two_tasks_are_one_session_and_one_thread(scripted: Callable[..., Place]) -> None:
    place = scripted(call("x=41; echo begun > app.py"), "app.py is there", call("echo $((x+1))"), "it is 42")
    agent = place.agent()
    assert agent.current_session_id is None and agent.current_thread_id is None
    first = run(agent, "Create app.py")
    assert (first.output, first.ended, first.success, first.task) == ("app.py is there", "done", True, 1)
    assert (place.workspace / "app.py").read_text() == "begun\n"
    assert first.continuity.status == "live"
    assert (first.usage.input_tokens, first.usage.output_tokens) == (200, 20)
    assert abs(first.cost - 0.00024) < 1e-9
    step, last = first.steps
    assert (step.number, step.calls[0].call.tool, step.calls[0].run) == (1, "runtime", 1)
    assert (last.number, last.text, last.calls) == (2, "app.py is there", ())
    second = run(agent, "What is x+1?")
    assert (second.output, second.session_id, second.thread_id) == ("it is 42", first.session_id, first.thread_id)
    assert "42" in second.steps[0].calls[0].output
    assert place.model.keys[0] == f"Bearer {KEY}"

    agent.reset_session()
    fresh = run(agent, "Begin again")
    assert fresh.session_id != first.session_id and fresh.thread_id != first.thread_id
    info = agent.resume_session(first.session_id)
    assert (info.task_count, info.status, agent.current_thread_id) == (2, "idle", first.thread_id)
    assert agent.session().exec("echo $x").stdout == "41\n"
    # Another program, after the server was killed.
    place.server.kill()
    place.server.start()
    another = place.agent(runtime=CloudRuntime(place.server.url, token_of(place.server)))
    another.resume_session(first.session_id)
    assert [task.task for task in another.tasks()] == [2, 1]
    assert another.session().exec("echo $x").stdout == "41\n"


def test_async_agents_do_the_same(scripted: Callable[..., Place]) -> None:
    place = scripted(call("echo hello"), "it says hello", call("echo again"), "twice")

    async def main() -> None:
        agent = place.async_agent()
        kinds, words = [], ""
        async for event in stream_async(agent, "Say hello"):
            if isinstance(event, Delta):
                words += event.text
            elif not isinstance(event, OtherEvent):
                kinds.append(type(event).__name__)
        assert kinds == ["TaskBegun", "Reply", "Outcome", "Reply", "Ended"]
        assert "it says hello".endswith(words)
        second = await run_async(agent, "Again")
        assert (second.output, second.session_id) == ("twice", agent.current_session_id)
        # However many tasks are the first, there is one session.
        other = place.async_agent()
        begun = await asyncio.gather(*(other.begin("x") for _ in range(3)), return_exceptions=True)
        tasks = [task for task in begun if not isinstance(task, BaseException)]
        assert len(tasks) == 1 and all(isinstance(e, sessile.SessionBusyError) for e in begun if e not in tasks)
        await tasks[0].result()

    asyncio.run(main())


def test_a_cancelled_task_is_stopped_and_the_agent_goes_on(scripted: Callable[..., Place]) -> None:
    place = scripted(call("touch begun; sleep 1000"), "never mind")

    async def main() -> None:
        agent = place.async_agent()
        going = asyncio.ensure_future(run_async(agent, "wait"))
        while not (place.workspace / "begun").exists():
            await asyncio.sleep(0.01)
        for asked in (agent.begin("more"), agent.fork(), agent.rewind(0)):
            with pytest.raises(sessile.SessionBusyError, match="wait for it, or cancel it$") as busy:
                await asked  # type: ignore[misc]
            assert "wait=True" not in str(busy.value)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        assert (await agent.info()).status == "idle"
        assert (await run_async(agent, "still there?")).output == "never mind"

    asyncio.run(main())


def test_calls_wait_for_the_callers_word(scripted: Callable[..., Place]) -> None:
    place = scripted(call("touch one"), call("touch two"), "done")
    asked = []

    def approve(wanted: ToolCall) -> Any:
        asked.append(wanted.input["command"])
        return wanted.input["command"] == "touch two" or "not that one"

    result = run(place.agent(on_approval=approve), "make files")
    assert asked == ["touch one", "touch two"]
    assert not (place.workspace / "one").exists() and (place.workspace / "two").exists()
    assert result.steps[0].calls[0].output == "the user does not allow this: not that one"

    def fail(_: ToolCall) -> bool:
        raise KeyError("no idea")

    agent = place.agent(on_approval=fail)
    with pytest.raises(KeyError):
        run(agent, "make files")
    assert agent.info().status == "idle"

    async def later(wanted: ToolCall) -> bool:
        await asyncio.sleep(0)
        return True

    assert asyncio.run(run_async(place.async_agent(on_approval=later), "make files")).output == "done"
    assert (place.workspace / "one").exists()


def test_a_task_goes_on_without_its_caller(scripted: Callable[..., Place]) -> None:
    place = scripted(call("while ! [ -e go ]; do sleep 0.01; done; echo once >> log"), "done")
    begun = place.agent().begin("do it")
    other = place.agent()
    other.resume_session(begun.session_id)
    task = other.last_task()
    assert task is not None and task.number == begun.number
    results: List[Any] = []
    waiting = threading.Thread(target=lambda: results.append(task.result()))
    waiting.start()
    (place.workspace / "go").touch()
    waiting.join()
    assert results[0].output == "done" and len(results[0].steps) == 2
    assert (place.workspace / "log").read_text() == "once\n"


def test_agents_fork_go_back_and_move(scripted: Callable[..., Place]) -> None:
    script = (call("x=1; echo one > file"), "one", call("x=$((x+1)); echo two > file; echo $x"), "two")
    place, elsewhere = scripted(*script), scripted(*script)
    agent = place.agent()
    first = run(agent, "one")
    (fork,) = agent.fork(files="copy")
    assert "2" in run(fork, "two").steps[0].calls[0].output
    assert (place.workspace / "file").read_text() == "one\n"
    second = run(agent, "two")
    back = agent.rewind(first.steps[-1].number)
    assert (back.step, back.tasks) == (2, (2,)) and back.steps == tuple(step.number for step in second.steps)
    assert (place.workspace / "file").read_text() == "one\n"
    with pytest.raises(sessile.SandboxError) as failure:
        agent.rewind(99)
    assert failure.value.status == 404 and "as new as" not in str(failure.value)
    with pytest.raises(sessile.SandboxError) as full:
        agent.move_to(elsewhere.runtime, workspace=str(elsewhere.workspace))
    assert full.value.code == "bad_directory" and "that exists" not in str(full.value)

    home = elsewhere.workspace / "home"
    agent.move_to(elsewhere.runtime, workspace=str(home))
    assert (agent.runtime, agent.current_thread_id) == (elsewhere.runtime, first.thread_id)
    assert "2" in run(agent, "two").steps[0].calls[0].output
    assert (home / "file").read_text() == "two\n"
    agent.undo()
    assert (home / "file").read_text() == "one\n"
    left = place.agent()
    left.resume_session(first.session_id)
    with pytest.raises(sessile.SandboxError) as moved:
        run(left, "more")
    assert moved.value.code == "agent_moved"


def test_an_agent_can_be_confined_and_have_its_prices(scripted: Callable[..., Place]) -> None:
    place = scripted(call("touch made; echo $?"), "done")
    agent = place.agent(sandbox="read-only", limits={"max_cost": 1000, "price": {"input": 7.0, "output": 7.0}})
    try:
        result = run(agent, "write")
    except sessile.UnavailableError as error:
        unavailable(error)
    assert "Read-only" in result.steps[0].calls[0].output
    assert not (place.workspace / "made").exists()
    assert result.cost == pytest.approx((result.usage.input_tokens + result.usage.output_tokens) * 7e-6)


def test_what_goes_wrong_is_told_by_a_stable_word(
    scripted: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = scripted(call("echo 1"), call("echo 2"), "here I am")
    agent = place.agent()
    limited = run(agent, "count", limits={"max_steps": 2})
    assert (limited.ended, limited.limit, limited.output, limited.success) == ("limit", "steps", "", False)
    place.model.close()
    monkeypatch.delenv("MODEL_KEY")
    place.server.kill()
    place.server.start()
    agent = place.agent(runtime=CloudRuntime(place.server.url, token_of(place.server)))
    agent.resume_session(limited.session_id)
    with pytest.raises(TaskFailedError) as failure:
        run(agent, "again")
    assert failure.value.code == "bad_key" and failure.value.result.ended == "failed"
    with pytest.raises(sessile.InvalidConfigurationError):
        run(agent, " ")
    with pytest.raises(sessile.InvalidConfigurationError):
        place.agent().fork(2)
    with pytest.raises(sessile.InvalidConfigurationError):
        Agent(agent_type="llm")
    with pytest.raises(sessile.SessionNotFoundError):
        place.agent().resume_session("sess_0000")
    with pytest.raises(sessile.AuthenticationError):
        run(place.agent(runtime=CloudRuntime(place.server.url, "wrong")), "x")


def test_a_local_runtime_without_a_model_says_what_to_do() -> None:
    lines: List[str] = []
    with pytest.raises(sessile.InvalidConfigurationError) as failure:
        for _ in stream(Agent(runtime=LocalRuntime(debug=lines.append)), "do it"):
            pass
    assert re.search(r"add a \[\[model\]\] to /.*/local/sessile\.toml \(yours alone: chmod 600\), and end it with `kill \d+`", str(failure.value))
    assert lines[-1] == "POST /v1/agents: 400"


def test_what_happens_between_steps_has_types() -> None:
    at = datetime.fromtimestamp(1, timezone.utc)

    def read(name: str, **data: Any) -> Any:
        return Reader().read(name, json.dumps({"entry": 7, "at_ms": 1000, "type": name, **data}))

    assert read("intent", call="c", after="b2") == Intent(7, at, "c", None, "b2")
    assert read("intent", call="c", before="a1", after="b2") == Intent(7, at, "c", "a1", "b2")
    continued = read("continued", status="restored", as_of_run=3, lost=["run 4, which was going"])
    assert continued == Continued(7, at, AgentContinuity("restored", 3, ("run 4, which was going",)))
    failure = {"fault": "rate_limited", "message": "too many requests", "retry_after_ms": 500}
    retry = read("retry", attempt=1, after_ms=500, failure=failure)
    assert retry == Retry(1, 500, Failure("rate_limited", "too many requests"))
    assert isinstance(read("activity"), OtherEvent)


def test_an_edit_is_told_before_it_is_made(scripted: Callable[..., Place]) -> None:
    place = scripted([("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"})], "edited")
    (place.workspace / "a.txt").write_text("one\n")
    intents = [event for event in stream(place.agent(), "Edit") if isinstance(event, Intent)]
    before, after = (hashlib.sha256(text).hexdigest() for text in (b"one\n", b"two\n"))
    assert [(intent.call, intent.before, intent.after) for intent in intents] == [("call_0_0", before, after)]


def test_a_server_that_goes_away_for_good_is_told_with_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setattr("sessile._core.retry.KNOWN", 0.2)
    place = Place(tmp_path / "gone", [call("echo begun > begun; until [ -e go ]; do sleep 0.05; done"), "done"])
    try:
        agent = place.agent()
        with pytest.raises(sessile.ConnectionError, match="went away during the stream") as gone:
            for event in stream(agent, "Wait"):
                if isinstance(event, Reply):
                    place.server.kill()
        assert gone.value.code == "connection_lost"
        assert gone.value.hint and f"resume_session('{agent.current_session_id}')" in gone.value.hint
        # The same of a run.
        place.server.start()
        session = sessile.Client(place.server.url, token_of(place.server)).session(keep=True)
        with pytest.raises(sessile.ConnectionError, match="went away during the stream") as gone:
            for told in session.stream("echo one; sleep 100"):
                if isinstance(told, sessile.Stdout):
                    place.server.kill()
        assert gone.value.code == "connection_lost" and "get_run(" in (gone.value.hint or "")
        # What it says helps.
        place.server.start()
        monkeypatch.setattr("sessile._core.retry.KNOWN", 30.0)
        assert sessile.Session.attach(session.id, client=session.client).get_run(1).output().stdout == "one\n"
        (place.workspace / "go").touch()
        again = place.agent()
        again.resume_session(str(agent.current_session_id))
        task = again.last_task()
        assert task is not None and task.result().output == "done"
    finally:
        place.end()


def test_a_session_without_an_agent_is_told_in_words_of_this_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    place = Place(tmp_path / "none", ["done"])
    try:
        client = sessile.Client(place.server.url, token_of(place.server))
        with client.session() as session, pytest.raises(sessile.SandboxError) as refused:
            place.agent().resume_session(session.id)
        assert refused.value.code == "agent_not_found" and "/v1/" not in str(refused.value)
        assert "resume_session" in (refused.value.hint or "")
        agent = place.agent()
        run(agent, "begin")
        with pytest.raises(sessile.CheckpointError, match="no step 99") as unknown:
            agent.rewind(99)
        assert unknown.value.code == "checkpoint_not_found"
    finally:
        place.end()


def test_an_agent_that_was_ended_takes_no_more_tasks(scripted: Callable[..., Place]) -> None:
    place = scripted("done")
    agent = place.agent()
    first = run(agent, "begin")
    agent.end()
    agent.end()
    with pytest.raises(sessile.SessionClosedError, match=r"reset_session\(\) lets the next task begin a new one"):
        run(agent, "more")
    # What was said stays.
    assert (agent.current_session_id, [task.output for task in agent.tasks()]) == (first.session_id, ["done"])
    agent.reset_session()
    assert run(agent, "again").session_id != first.session_id
    with pytest.raises(sessile.CheckpointError, match="its steps are 1 to 1") as error:
        agent.rewind(99)
    assert error.value.hint == "take a step that there is; 0 is before the first one"
    agent.undo()
    with pytest.raises(sessile.CheckpointError, match="no task to take back") as error:
        agent.undo()
    assert error.value.hint == "give the agent a task first"
