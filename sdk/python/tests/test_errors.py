"""Each thing that goes wrong has a type, a stable code, and says what to do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import sessile
from conftest import Server, token_of
from sessile import AsyncSession, Client, Session


def test_a_missing_binary_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("SESSILE_BIN", "/nowhere/sessile")
    with pytest.raises(sessile.BinaryNotFoundError, match="SESSILE_BIN is '/nowhere/sessile'"):
        Session()
    monkeypatch.delenv("SESSILE_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sessile.ConnectionError, match="pip install sessile") as missing:
        Session()
    assert missing.value.code == "binary_not_found"


@pytest.mark.parametrize(
    ("system", "machine", "what_to_do"),
    [
        ("Linux", "riscv64", "cargo build --release -p sessile.*SESSILE_BIN.*SESSILE_URL"),
        ("Darwin", "arm64", "sessions live on Linux: set SESSILE_URL"),
    ],
)
def test_a_platform_without_a_program_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, machine: str, what_to_do: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SESSILE_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sessile.BinaryNotFoundError, match=f"for {system} on {machine}.*{what_to_do}"):
        Session()


def test_a_program_for_another_machine_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for e_machine, loader in ((b"\xf3\x00", None), (None, b"/lib/ld-elsewhere.so.1")):
        program = bytearray(Path("/bin/true").read_bytes())
        if e_machine:
            program[18:20] = e_machine
        if loader:
            at = program.index(b"/lib64/ld-linux" if b"/lib64/ld-linux" in program else b"/lib/ld-linux")
            program[at : at + len(loader) + 1] = loader + b"\0"
        (tmp_path / "sessile").write_bytes(program)
        (tmp_path / "sessile").chmod(0o755)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        monkeypatch.setenv("SESSILE_BIN", str(tmp_path / "sessile"))
        with pytest.raises(sessile.BinaryNotFoundError, match="built for another machine.*cargo build.*SESSILE_BIN"):
            Session()


def test_a_server_that_is_not_there_is_told_soon() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(sessile.ConnectionError, match="sessile serve") as error:
            Client(url, "token").run(":")
    assert error.value.endpoint == url and error.value.code == "connection_failed"
    assert isinstance(error.value, ConnectionError)
    with pytest.raises(sessile.InvalidConfigurationError, match="https://host"):
        Client("ftp://host")


def test_a_wrong_token_is_refused_and_told(server: Server) -> None:
    with pytest.raises(sessile.AuthenticationError, match="SESSILE_TOKEN") as error:
        Client(server.url, "wrong").session()
    assert error.value.code == "unauthorized" and error.value.status == 401
    with pytest.raises(sessile.AuthenticationError):
        Client(server.url).session()


def test_a_closed_session_refuses_here_and_elsewhere() -> None:
    session = Session()
    other = Session.attach(session.id)
    session.close()
    session.close()
    with pytest.raises(sessile.SessionClosedError) as here:
        session.exec(":")
    with pytest.raises(sessile.SessionClosedError) as there:
        other.exec(":")
    assert here.value.session_id == there.value.session_id == session.id
    assert there.value.code == "session_ended"
    with pytest.raises(sessile.SessionClosedError):
        Session.attach(session.id)
    with pytest.raises(sessile.SessionNotFoundError):
        Session.attach("sess_000000000000000000000000")


def test_errors_of_requests_have_their_own_types() -> None:
    with Session(name="taken") as session:
        with pytest.raises(sessile.ConflictError) as taken:
            Session(name="taken")
        assert taken.value.code == "name_taken"
        with pytest.raises(sessile.RunNotFoundError):
            session.get_run(99).wait()
        with pytest.raises(sessile.InvalidConfigurationError):
            session.exec(":", timeout="soon")
        run = session.background("sleep 100")
        with pytest.raises(sessile.SessionBusyError):
            session.fork()
        run.interrupt()
    with pytest.raises(sessile.InvalidConfigurationError) as missing:
        Session(workspace="not/there")
    assert missing.value.code == "bad_directory" and missing.value.hint


CTRL_C = """
import sys
from sessile import Session
with Session() as session:
    session.exec("x=kept")
    print(session.id, flush=True)
    try:
        session.exec("sleep 1000", timeout=0)
    except KeyboardInterrupt:
        kept = session.exec("echo $x", timeout=0).stdout.strip()
        print(session.history()[1].exit_code, kept, flush=True)
"""

CTRL_C_ASYNC = """
import asyncio
from sessile import AsyncSession
async def main():
    async with AsyncSession() as session:
        await session.exec("x=kept")
        print(session.id, flush=True)
        try:
            await session.exec("sleep 1000", timeout=0)
        except asyncio.CancelledError:
            kept = (await session.exec("echo $x", timeout=0)).stdout.strip()
            print((await session.history())[1].exit_code, kept, flush=True)
asyncio.run(main())
"""

CTRL_C_STREAM = CTRL_C.replace(
    'session.exec("sleep 1000", timeout=0)',
    '[print("seen", flush=True) for _ in session.stream("sleep 1000", 0)]',
)


@pytest.mark.parametrize("program", [CTRL_C, CTRL_C_ASYNC, CTRL_C_STREAM], ids=["sync", "async", "stream"])
def test_ctrl_c_interrupts_the_run_and_keeps_the_session(program: str) -> None:
    # Tests that were started in the background ignore it, and so would the program.
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    session = Session.attach(process.stdout.readline().strip())
    wait_for_run(session, 2)
    if program == CTRL_C_STREAM:
        # Its own code has the run's first event now, and waits for the next one.
        assert process.stdout.readline() == "seen\n"
    wait_until_asleep(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "130 kept\n"
    process.stdout.close()
    process.wait()


def wait_for_run(session: Session, number: int) -> None:
    """Until it is going: its command has been seen to begin."""
    stream = session.events()
    for event in stream:
        if event == sessile.Started(number):
            return


def wait_until_asleep(pid: int) -> None:
    """Until it waits for something. With the run begun, that is what the server says next."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.001)


def test_a_task_that_is_cancelled_interrupts_its_run() -> None:
    async def program() -> None:
        async with AsyncSession() as session:
            task = asyncio.ensure_future(session.exec("sleep 1000", timeout=0))
            async for event in session.events():
                if event == sessile.Started(1):
                    break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await session.exec("echo free", timeout=0)).stdout == "free\n"
            assert [run.phase for run in await session.runs()] == ["closed", "closed"]

    asyncio.run(program())


def test_ctrl_c_before_the_run_begins_does_not_begin_it() -> None:
    """The request never arrived: asking which run it was must not start it."""
    with Session() as session:
        order = {"command": "echo began > proof"}
        session._abandon("exec", order, "a-key-that-was-never-sent", None)
        assert session.runs() == [] and not Path("proof").exists()


def test_other_threads_may_be_interrupted_as_others_go_on() -> None:
    client = Client()
    with client.session() as one, client.session() as two:
        run = two.background("sleep 100")
        assert one.exec("echo free").stdout == "free\n"
        run.interrupt()
        assert run.wait().interrupted


def test_a_token_that_is_limited_is_refused_elsewhere(server: Server) -> None:
    made = subprocess.run(
        [os.environ["SESSILE_BIN"], "token", "create", "narrow", "--workspace", "."],
        cwd=server.directory,
        env=server.environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    token = json.loads(made.stdout)["token"]
    assert token != token_of(server)
    with pytest.raises(sessile.PermissionDeniedError) as refused:
        Client(server.url, token).session(workspace="/")
    assert refused.value.code == "forbidden"


def test_another_program_than_sessile_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for program in ("/bin/false", "/bin/true"):
        monkeypatch.setenv("SESSILE_BIN", program)
        with pytest.raises(sessile.BinaryNotFoundError, match=f"'{program}' is not sessile.*SESSILE_BIN"):
            Session()


def test_a_program_beside_the_package_is_found(tmp_path: Path) -> None:
    """As `pip install --target` leaves it."""
    source = Path(sessile.__file__).parent
    (tmp_path / "sessile").symlink_to(source)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sessile").symlink_to(os.environ["SESSILE_BIN"])
    code = "import os\nfrom sessile._core.local import find_binary\nprint(find_binary({'PATH': '/nowhere'}))"
    call = [sys.executable, "-c", code]
    found = subprocess.run(
        call, env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE, text=True, check=True
    )
    assert found.stdout == f"{tmp_path}/bin/sessile\n"


def test_errors_say_what_to_do_in_words_of_this_package(tmp_path: Path) -> None:
    session = Session()
    other = Session.attach(session.id)
    with pytest.raises(sessile.CommandExecutionError) as failed:
        session.exec("exit 3", check=True)
    with pytest.raises(sessile.CommandTimeoutError) as late:
        session.exec("sleep 100", timeout="50ms", check=True)
    going = session.background("sleep 100")
    with pytest.raises(sessile.SessionBusyError) as busy:
        session.fork()
    with pytest.raises(sessile.SessionError) as no_input:
        going.input("x")
    with pytest.raises(sessile.SessionError) as no_terminal:
        going.screen()
    session.write_file("full/file", "x")
    with pytest.raises(sessile.SandboxError) as full:
        session.remove("full")
    session.remove("full", recursive=True)
    with pytest.raises(sessile.InvalidConfigurationError) as bad:
        session.exec("x", timeout="soon")
    session.close()
    with pytest.raises(sessile.SessionClosedError) as closed:
        other.exec(":")
    with pytest.raises(sessile.SessionNotFoundError) as missing:
        Session.attach("sess_000000000000000000000000")
    with pytest.raises(sessile.SandboxNotFoundError) as no_sandbox:
        sessile.Sandbox.connect("sess_000000000000000000000000")
    with pytest.raises(sessile.CodebaseNotFoundError) as no_codebase:
        Client().get_codebase("cb_0000")
    with pytest.raises(sessile.InvalidConfigurationError) as no_directory:
        sessile.Sandbox.from_local(tmp_path / "nowhere")
    for raised in (failed, late, closed, missing, no_sandbox, no_codebase, no_directory):
        hint = raised.value.hint  # type: ignore[attr-defined]
        assert hint and "/v1/" not in hint and hint in str(raised.value)
    said = {
        "busy": (busy, "pass wait=True"),
        "input_closed": (no_input, "interactive=True"),
        "no_terminal": (no_terminal, "terminal=True"),
        "directory_not_empty": (full, "recursive=True"),
        "bad_request": (bad, "the docstring"),
    }
    for code, (raised, words) in said.items():
        assert (raised.value.code, words in str(raised.value)) == (code, True), str(raised.value)


def test_a_certificate_that_is_not_known_names_verify(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        + ["-keyout", str(key), "-out", str(cert)],
        stderr=subprocess.DEVNULL,
    )
    assert made.returncode == 0
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    connection.close()

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        with pytest.raises(sessile.ConnectionError, match="pass verify= to Client"):
            Client(f"https://127.0.0.1:{listening.getsockname()[1]}", "token").run(":")


def test_plain_http_to_a_port_with_tls_says_to_use_https(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def alert() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                # As TLS says that it was sent something else.
                connection.sendall(b"\x15\x03\x01\x00\x02\x02\x16")

    threading.Thread(target=alert, daemon=True).start()
    with pytest.raises(sessile.ConnectionError, match="does not speak HTTP.*use https://"):
        Client(f"http://127.0.0.1:{listening.getsockname()[1]}", "token").run(":")
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def test_a_server_that_went_for_good_may_have_done_what_it_was_asked() -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def once() -> None:
        connection, _ = listening.accept()
        connection.recv(1 << 16)
        listening.close()
        connection.close()

    threading.Thread(target=once, daemon=True).start()
    with pytest.raises(sessile.ConnectionError, match="went away.*not known whether the request was carried out"):
        Client(f"http://127.0.0.1:{listening.getsockname()[1]}", "token").run(":")


def test_a_hint_is_not_said_twice() -> None:
    from sessile._core.refusals import Asked, make

    hint = "use a token that covers this workspace"
    assert str(make("forbidden", f"/x is outside; {hint}", hint, 403, Asked())) == f"/x is outside; {hint}"
    assert str(make("forbidden", "/x is outside", hint, 403, Asked())) == f"/x is outside ({hint})"
    message = "/x: it is not empty; name a new or empty directory"
    error = make("bad_directory", message, "name a directory that exists", 400, Asked())
    assert (str(error), error.hint) == (message, "name a new or empty directory")


def test_errors_have_what_they_are_about_in_fields(server: Server) -> None:
    with Session() as session:
        with pytest.raises(sessile.FileNotFoundError) as missing:
            session.read_file("no/such file")
        assert (missing.value.codebase_id, missing.value.file_path) == (session.id, "no/such file")
        with pytest.raises(sessile.FileNotFoundError) as unmoved:
            session.move("not-there", "b")
        assert unmoved.value.file_path == "not-there" and unmoved.value.grpc_code == 5


def test_a_limit_of_the_server_is_in_its_error(tmp_path: Path) -> None:
    server = Server(tmp_path, args=["--max-body", "1KiB"])
    try:
        client = Client(server.url, server.token)
        with client.session() as session, pytest.raises(sessile.ResourceLimitExceededError) as large:
            session.exec("x" * 2000)
        assert (large.value.resource_type, large.value.limit) == ("too_large", "1024")
        client.close()
    finally:
        server.end()
