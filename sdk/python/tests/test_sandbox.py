"""Sandboxes, with the interface that AgentFense's users know."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Iterator

import pytest

import sessile
from conftest import REPOSITORY, Server, token_of, unavailable
from sessile import (
    AsyncSandbox,
    Client,
    CommandExecutionError,
    CommandTimeoutError,
    Permission,
    PermissionRule,
    ResourceLimits,
    Sandbox,
    SandboxStatus,
)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path) -> None:
    """Passes over what this machine cannot enforce, and says what that is."""
    try:
        Sandbox.from_local(tmp_path).destroy()
    except sessile.UnavailableError as error:
        unavailable(error)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/main.py").write_text("print('hello')\n")
    (project / "env.sh").write_text("export STAGE=test\n")
    (project / ".env").write_text("KEY=secret\n")
    (project / "debug.log").write_text("noise\n")
    return project


@pytest.fixture
def sandbox(project: Path) -> Iterator[Sandbox]:
    with Sandbox.from_local(project, labels={"team": "a"}) as sandbox:
        yield sandbox


def test_the_directory_is_worked_in_and_stays_as_it_was(sandbox: Sandbox, project: Path) -> None:
    assert sandbox.run("pwd; python3 src/main.py").stdout == "/workspace\nhello\n"
    sandbox.run("rm src/main.py; echo new > new.txt")
    assert sandbox.run("ls src; cat new.txt").stdout == "new\n"
    assert (project / "src/main.py").exists() and not (project / "new.txt").exists()
    assert sandbox.status is SandboxStatus.RUNNING and sandbox.labels == {"team": "a"}


def test_a_session_keeps_its_state_and_each_run_is_fresh(sandbox: Sandbox) -> None:
    with sandbox.session(env={"GREETING": "it's me"}) as session:
        session.exec("cd src && source ../env.sh")
        assert session.exec("pwd; echo $STAGE $GREETING").stdout == "/workspace/src\ntest it's me\n"
        # Both see the same files.
        session.exec("echo shared > /workspace/shared.txt")
        assert sandbox.run("cat shared.txt; echo [$STAGE]").stdout == "shared\n[]\n"
        session.exec("sleep 1000 & echo $! > /workspace/pid")
        assert sandbox.run("kill -0 $(cat pid)").success
        assert session.sandbox_id == sandbox.id
    assert not sandbox.run("kill -0 $(cat pid) 2>/dev/null").success
    with pytest.raises(sessile.SessionClosedError):
        session.exec(":")


def test_runs_have_their_own_environment_directory_stdin_and_time(sandbox: Sandbox) -> None:
    assert sandbox.run("echo $A; pwd", env={"A": "1"}, workdir="/workspace/src").stdout == "1\n/workspace/src\n"
    assert sandbox.exec("sort", stdin="b\na\n", timeout=timedelta(seconds=30)).stdout == "a\nb\n"
    assert sorted(sandbox.exec_stream("echo out; echo err >&2")) == [b"err\n", b"out\n"]
    assert not sandbox.run(":", workdir="/nowhere").success
    with pytest.raises(CommandTimeoutError) as late:
        sandbox.run("sleep 100", timeout=1)
    assert late.value.timeout_seconds == 1.0 and late.value.command == "sleep 100"
    with pytest.raises(CommandExecutionError) as failed:
        sandbox.run("echo why >&2; exit 7", raise_on_error=True)
    assert failed.value.exit_code == 7 and failed.value.stderr == "why\n"
    with sandbox.session() as session, pytest.raises(CommandTimeoutError):
        session.exec("sleep 100", timeout=timedelta(milliseconds=200))
    # Runs do not wait for each other.
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda n: sandbox.run(f"sleep 0.2; echo {n}").stdout, range(4)))
    assert done == [f"{n}\n" for n in range(4)]


def test_rules_say_what_is_there_and_what_may_be_done(project: Path) -> None:
    rules = [
        PermissionRule("/src/**", Permission.READ, priority=20),
        {"pattern": "/out/**", "permission": "write", "priority": 20},
    ]
    with Sandbox.from_local(project, permissions=rules, ignore_patterns=["*.log"]) as sandbox:
        assert sandbox.run("cat .env debug.log").exit_code == 1
        assert sorted(sandbox.run("ls -A").stdout.split()) == ["env.sh", "src"]
        assert "denied" in sandbox.run("echo x > src/main.py").stderr
        assert sandbox.run("mkdir out && echo x > out/x && cat out/x").stdout == "x\n"
    with Sandbox.from_local(project, preset="read-only") as sandbox:
        assert not sandbox.run("touch x").success
    with pytest.raises(sessile.InvalidConfigurationError, match="nothing-like"):
        Sandbox.from_local(project, preset="nothing-like-it")
    with pytest.raises(sessile.InvalidConfigurationError, match="not a directory"):
        Sandbox.from_local(project / "nowhere")


def test_files_are_seen_as_the_rules_say(project: Path) -> None:
    with Sandbox.from_local(project, permissions=[PermissionRule("/src/**", priority=20)]) as sandbox:
        with pytest.raises(sessile.FileNotFoundError):
            sandbox.read_file("/workspace/.env")
        with pytest.raises(sessile.PermissionDeniedError) as denied:
            sandbox.write_file("/workspace/src/main.py", "x")
        assert (denied.value.operation, denied.value.path) == ("write", "src/main.py")


def test_files_go_in_and_out_and_changes_are_seen_and_applied(sandbox: Sandbox, project: Path) -> None:
    sandbox.write_file("/workspace/src/new.py", "print(1)\n")
    assert sandbox.read_file("src/new.py") == "print(1)\n"
    assert sandbox.read_file_bytes("/src/new.py") == b"print(1)\n"
    assert sorted(sandbox.list_files("/workspace/src")) == ["src/main.py", "src/new.py"]
    assert "src/new.py" in str(sandbox.diff())
    assert not (project / "src/new.py").exists()
    sandbox.apply()
    assert (project / "src/new.py").read_text() == "print(1)\n"
    sandbox.run("echo more >> src/new.py")
    sandbox.discard()
    assert sandbox.read_file("src/new.py") == "print(1)\n"


def test_a_sandbox_is_started_stopped_found_again_and_destroyed(project: Path) -> None:
    sandbox = Sandbox.from_local(project, auto_start=False, labels={"a": "b"})
    assert sandbox.status is SandboxStatus.PENDING
    with pytest.raises(sessile.SandboxNotRunningError, match="start"):
        sandbox.run(":")
    sandbox.start()
    sandbox.run("echo kept > kept")
    again = Sandbox.connect(sandbox.id)
    assert again.run("cat kept").stdout == "kept\n" and again.labels == {"a": "b"}
    sandbox.stop()
    with pytest.raises(sessile.SandboxNotRunningError):
        sandbox.run(":")
    # Its files are there before anything runs in it again.
    assert sandbox.start().read_file("kept") == "kept\n"
    assert sandbox.run("cat kept").stdout == "kept\n"
    with Sandbox.connect(sandbox.id) as third:
        assert third.read_file("kept") == "kept\n"
        assert [rule.to_dict() for rule in third.info.permissions] == [rule.to_dict() for rule in sandbox.info.permissions]
    again.destroy()
    for call in (lambda: sandbox.run(":"), lambda: sandbox.write_file("kept", "x")):
        with pytest.raises(sessile.SandboxNotRunningError, match="destroyed"):
            call()
    assert sandbox.refresh().status is SandboxStatus.STOPPED
    sandbox.destroy()
    with pytest.raises(sessile.SandboxNotFoundError):
        Sandbox.connect(sandbox.id)


def test_limits_hold_or_are_refused(project: Path) -> None:
    limits = ResourceLimits(memory_bytes=64 << 20, pids_limit=50)
    try:
        sandbox = Sandbox.from_local(project, resources=limits)
    except sessile.SandboxError as refusal:
        # Never silently without them.
        assert "limits" in refusal.message
        return
    with sandbox:
        hungry = "python3 -c 'x = bytearray(1 << 28); print(len(x))'"
        assert not sandbox.run(hungry).success
        assert sandbox.run("echo alive").stdout == "alive\n"
        with sandbox.session(shell="python3") as session:
            result = session.exec("x = bytearray(1 << 28)")
        assert [(met.resource, met.limit) for met in result.limits_met] == [("memory", 64 << 20)]
        with pytest.raises(sessile.ResourceLimitExceededError) as met:
            result.check()
        assert (met.value.resource_type, met.value.limit) == ("memory", str(64 << 20))
        assert isinstance(met.value, CommandExecutionError) and "memory limit" in str(met.value)
        assert str(pickle.loads(pickle.dumps(met.value))) == str(met.value)


def test_sandboxes_of_codebases_on_another_machine(server: Server, project: Path) -> None:
    """A server that does not see this machine's files is sent them."""
    client = Client(server.url, token_of(server))
    with Sandbox.from_local(project, ignore_patterns=["*.log"], client=client) as sandbox:
        assert sandbox.run("python3 src/main.py; ls").stdout == "hello\nenv.sh\nsrc\n"
        assert sandbox.codebase_id is not None
    with pytest.raises(sessile.CodebaseNotFoundError):
        client.get_codebase(sandbox.codebase_id)
    codebase = client.create_codebase("example", "me")
    client.upload_file(codebase.id, "a.txt", b"a\n")
    with Sandbox.from_codebase(codebase.id, client=client) as sandbox:
        sandbox.run("echo changed > a.txt")
        assert sandbox.run("cat a.txt").stdout == "changed\n"
    assert client.download_file(codebase.id, "a.txt") == b"a\n"
    client.delete_codebase(codebase.id)
    client.close()


def test_async_sandboxes_are_the_same(project: Path) -> None:
    async def program() -> None:
        async with AsyncSandbox.from_local(str(project)) as sandbox:
            assert (await sandbox.run("cat env.sh")).stdout == "export STAGE=test\n"
            async with sandbox.session() as session:
                await session.exec("x=1")
                assert (await session.exec("echo $x")).stdout == "1\n"
            chunks = [chunk async for chunk in sandbox.exec_stream("echo hi")]
            assert b"".join(chunks) == b"hi\n"
        sandbox = await AsyncSandbox.from_local(str(project))
        results = await asyncio.gather(*(sandbox.run(f"echo {n}") for n in range(3)))
        assert [result.stdout for result in results] == ["0\n", "1\n", "2\n"]
        await sandbox.destroy()

    asyncio.run(program())


def test_what_a_sandbox_starts_is_gone_with_it(sandbox: Sandbox) -> None:
    session = sandbox.session()
    name = f"sessile-test-leftover-{os.urandom(8).hex()}"
    session.exec(f"exec -a {name} sleep 1000 &")
    sandbox.destroy()
    found = subprocess.run(["pgrep", "-f", f"^{name}"], stdout=subprocess.PIPE)
    assert found.stdout == b""


def test_presets_are_those_of_the_server() -> None:
    tomllib = pytest.importorskip("tomllib")
    for name in sessile.list_presets():
        text = (REPOSITORY / f"crates/sandbox/presets/{name}.toml").read_text()
        there = tomllib.loads(text)["permissions"]
        here = [rule.to_dict() for rule in sessile.get_preset(name)]
        assert here == [{"type": "glob", "priority": 0, **rule} for rule in there]
    extended = sessile.extend_preset("read-only", overrides=[{"pattern": "/x", "permission": "none"}])
    assert extended[-1].priority > extended[0].priority


@pytest.mark.parametrize("language", ["bash", "python", "node"])
def test_files_of_a_sandboxed_session_are_there_after_a_reset(project: Path, language: str) -> None:
    with sessile.Session(language, workspace=str(project), sandbox="development") as session:
        session.write_file("new", "kept")
        session.reset()
        assert session.read_file("new") == "kept"
        session.reset()
        session.discard()
        assert not session.exists("new")


def test_the_client_names_sandboxes_and_sessions_by_their_ids() -> None:
    """AgentFense's low-level flow, by its names."""
    with sessile.SandboxClient() as client:
        codebase = client.create_codebase(name="flow", owner_id="me")
        assert client.upload_file(codebase.id, "hello.py", "print('hello')").size == 14
        rules = [{"pattern": "**/*.py", "permission": "read", "priority": 5}]
        made = client.create_sandbox(codebase_id=codebase.id, permissions=rules, labels={"a": "b"})
        assert made.status is SandboxStatus.PENDING
        assert made.permissions[-1] == PermissionRule("**/*.py", Permission.READ, priority=5)
        with pytest.raises(sessile.SandboxNotRunningError):
            client.exec(made.id, "true")
        assert client.start_sandbox(made.id).status is SandboxStatus.RUNNING
        result = client.exec(made.id, command="python3 hello.py; cat; pwd", stdin="in\n", workdir="/workspace")
        assert result.stdout == "hello\nin\n/workspace\n"
        assert b"".join(client.exec_stream(made.id, command="echo hi")) == b"hi\n"
        session = client.create_session(made.id, shell="/bin/sh", env={"A": "1"})
        client.session_exec(session.id, "cd /tmp; B=2", timeout=timedelta(seconds=30))
        assert client.session_exec(session.id, "echo $A$B; pwd").stdout == "12\n/tmp\n"
        assert client.get_session(session.id).status is sessile.SessionStatus.ACTIVE
        assert [one.id for one in client.list_sessions(made.id)] == [session.id]
        client.destroy_session(session.id)
        with pytest.raises(sessile.SessionNotFoundError):
            client.get_session(session.id)
        with client.session(made.id) as shell:
            assert shell.exec("source /dev/null && echo sourced").stdout == "sourced\n"
        assert [info.id for info in client.list_sandboxes(codebase.id)] == [made.id]
        assert client.get_sandbox(made.id).labels == {"a": "b"}
        assert client.stop_sandbox(made.id).status is SandboxStatus.STOPPED
        client.destroy_sandbox(made.id)
        with pytest.raises(sessile.SandboxNotFoundError):
            client.get_sandbox(made.id)
        client.delete_codebase(codebase.id)
