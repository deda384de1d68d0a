"""Files of a session, from outside."""

from __future__ import annotations

import os
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Iterator, List

import pytest

import sessile
from conftest import Server, token_of
from sessile import Client, FileChanged, Session
from sessile._core import trees


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def test_files_are_written_read_listed_moved_and_removed(session: Session, tmp_path: Path) -> None:
    session.write_file("src/main.py", "print('hi')\n", mode="0755")
    assert session.exec("./src/main.py 2>/dev/null; cat src/main.py").stdout == "print('hi')\n"
    assert session.read_file("src/main.py") == "print('hi')\n"
    assert session.read_file(str(tmp_path / "src/main.py")) == "print('hi')\n"
    session.write_file("data.bin", bytes(range(256)))
    assert session.read_file_bytes("data.bin") == bytes(range(256))
    assert session.read_file_bytes("data.bin", 10, 5) == bytes(range(10, 15))
    assert session.read_file_bytes("data.bin", 250) == bytes(range(250, 256))
    info = session.stat("src/main.py")
    assert (info.type, info.size, info.mode, info.is_dir) == ("file", 12, "0755", False)
    assert info.modified_at is not None
    session.make_directory("a/b/c")
    session.move("data.bin", "a/b/data.bin")
    paths = sorted(file.path for file in session.list_files(recursive=True))
    assert paths == ["a", "a/b", "a/b/c", "a/b/data.bin", "src", "src/main.py"]
    assert sorted(file.name for file in session.list_files()) == ["a", "src"]
    session.remove("a", recursive=True)
    assert not session.exists("a/b")


def test_what_is_wrong_with_a_path_is_told_by_type(session: Session) -> None:
    with pytest.raises(sessile.FileNotFoundError) as missing:
        session.read_file("nowhere")
    assert isinstance(missing.value, FileNotFoundError) and missing.value.code == "file_not_found"
    session.write_file("a/x", "")
    with pytest.raises(sessile.SandboxError) as full:
        session.remove("a")
    assert full.value.code == "directory_not_empty"
    with pytest.raises(sessile.PermissionDeniedError) as outside:
        session.read_file("/etc/passwd")
    assert outside.value.code == "outside_workspace"


def test_an_empty_file_is_told_as_done(session: Session, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    seen: List[int] = []
    session.upload(tmp_path / "empty", "empty", progress=seen.append)
    session.download("empty", tmp_path / "back", progress=seen.append)
    assert seen == [0, 0] and (tmp_path / "back").read_bytes() == b""


def test_trees_go_both_ways_with_links_and_modes(session: Session, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep/er").mkdir(parents=True)
    (tree / "deep/er/file").write_bytes(os.urandom(700_000))
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("deep/er/file")
    (tree / "node_modules").mkdir()
    (tree / "node_modules/x").write_text("x")
    (tree / "a.pyc").write_text("x")
    seen: List[int] = []
    session.upload(tree, "there", ignore=["node_modules", "*.pyc"], progress=seen.append)
    assert seen == sorted(seen) and seen[-1] > 700_000
    paths = sorted(file.path for file in session.list_files("there", recursive=True))
    assert paths == ["there/deep", "there/deep/er", "there/deep/er/file", "there/link", "there/run.sh"]
    session.download("there", tmp_path / "back")
    back = tmp_path / "back"
    assert (back / "deep/er/file").read_bytes() == (tree / "deep/er/file").read_bytes()
    assert os.readlink(back / "link") == "deep/er/file"
    assert (back / "run.sh").stat().st_mode & 0o777 == 0o755
    session.upload(tree / "run.sh", "one.sh")
    session.download("one.sh", tmp_path / "two.sh")
    assert (tmp_path / "two.sh").read_text() == "#!/bin/sh\n"
    with pytest.raises(FileNotFoundError):
        session.upload(tmp_path / "nowhere")


@pytest.mark.parametrize("has_filters", [True, False])
def test_a_tree_from_elsewhere_does_not_leave_its_directory(
    tmp_path: Path, has_filters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a session sends may have been made by whoever runs in it."""
    if not has_filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    for name in ("../escaped", "/abs/olute"):
        spool = BytesIO()
        with tarfile.open(fileobj=spool, mode="w") as tar:
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, BytesIO(b"x"))
        spool.seek(0)
        try:
            trees.unpack(spool, str(tmp_path / "in"))
        except tarfile.TarError:
            pass
        assert not (tmp_path / "escaped").exists() and not Path("/abs/olute").exists()


def test_changes_of_files_are_told_from_the_call_on(session: Session) -> None:
    session.make_directory("watched")
    with session.watch("watched") as changes:
        session.write_file("watched/new", "x")
        session.remove("watched/new")
        seen = [next(changes)]
        while seen[-1].change != "removed":
            seen.append(next(changes))
    assert {change.path for change in seen} == {"watched/new"} and seen[0].change == "created"
    with session.watch() as rest:
        Session.attach(session.id).close()
        assert list(rest) == []


def test_a_watch_sees_the_files_of_all_directories_below_unless_told_otherwise(session: Session) -> None:
    session.make_directory("tree/deep")
    for recursive, first in ((True, "tree/deep/a"), (False, "tree/b")):
        with session.watch("tree", recursive=recursive) as changes:
            session.exec("touch tree/deep/a; touch tree/b; rm tree/deep/a tree/b")
            assert next(change for change in changes if change.change == "created").path == first
    with session.watch("tree") as changes:
        session.exec("touch tree/deep/a")
        assert next(changes).path == "tree/deep/a"


def test_a_watch_that_missed_something_says_so(mortal: Server) -> None:
    """What happens while the server is not there, nobody sees."""
    session = Client(mortal.url, token_of(mortal)).session()
    with session.watch() as changes:
        session.write_file("before", "x")
        assert next(changes) == FileChanged("before", "created")
        mortal.kill()
        mortal.start()
        while next(changes).change != "overflow":
            pass
        session.write_file("after", "x")
        assert next(changes) == FileChanged("after", "created")
    session.close()


def test_codebases_are_kept_at_the_server(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for client in (Client(), Client(server.url, token_of(server))):
        codebase = client.create_codebase("example", "me")
        done = client.upload_file(codebase.id, "src/main.py", b"print(42)")
        assert done.size == 9 and len(done.checksum) == 64
        assert client.download_file(codebase.id, "/src/main.py") == b"print(42)"
        files = client.list_files(codebase.id, recursive=True)
        assert [file.path for file in files] == ["src", "src/main.py"]
        assert client.get_codebase(codebase.id).file_count == 1
        assert codebase.id in [each.id for each in client.list_codebases("me")]
        with pytest.raises(sessile.FileNotFoundError):
            client.download_file(codebase.id, "nowhere")
        client.delete_codebase(codebase.id)
        with pytest.raises(sessile.CodebaseNotFoundError):
            client.upload_file(codebase.id, "x", b"")
        with pytest.raises(sessile.CodebaseNotFoundError):
            client.get_codebase("../../etc")
        client.close()


def test_a_port_of_a_session_is_reached_through_the_server(session: Session) -> None:
    session.write_file("page.txt", "served")
    run = session.background("python3 -u -m http.server 0 --bind 127.0.0.1")
    said = ""
    while "port " not in said:
        said += run.output(wait=60).stdout
    port = session.port(int(said.split("port ")[1].split()[0]))
    answer = port.get("/page.txt")
    assert (answer.status, answer.content) == (200, b"served")
    assert port.get("/nowhere").status == 404
    with pytest.raises(sessile.SandboxError) as closed:
        session.port(1).get()
    assert closed.value.code == "port_not_open"
    run.interrupt()
