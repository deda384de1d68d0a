"""The Python examples of the documentation, run.

In a page, a ``python`` block is a program of its own, in an empty directory; ``python run=0`` is
not run. There are empty directories ``project`` and ``project/backend``. A ``text output`` block
right below it is what it prints; ``…`` stands for anything within a line. ``needs=sandbox`` passes it
over with a server that has none. ``remote=1`` is about another machine: https://box.example:7377,
with the token TOKEN and the directory /srv, is a real server here. Other blocks are those
of other tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional

import pytest

from conftest import REPOSITORY, Server, end_local, token_of
from scripted import Model, run

PAGES = [
    "sdk/python/README.md",
    "docs/sdk.md",
    "docs/agents.md",
    "docs/sdk-agents.md",
    "docs/sdk-python.md",
    "docs/coming-from.md",
    "docs/coming-from-testbase.md",
    "README.md",
    "docs/time-travel.md",
    "docs/terminals.md",
    "docs/sandbox.md",
    "docs/save-and-restore.md",
    "docs/http-api.md",
    "docs/sdk-typescript.md",
    "docs/coming-from-openclaw.md",
    "docs/policies.md",
    "docs/durable.md",
    "docs/node.md",
    "docs/python.md",
    "docs/shells.md",
    "docs/runtime-tool.md",
    "docs/server.md",
    "docs/examples.md",
    "docs/command-line.md",
    "docs/mcp.md",
    "docs/session-directory.md",
    "docs/performance.md",
    "docs/snapshot-format.md",
]

GENERATED = ["help.md"]
"""What the program says of itself."""

SCRIPT = [
    run("echo 'print(\"hello\")' > app.py; python3 app.py"),
    "app.py prints hello.",
    run("cat app.py"),
    "app.py handles errors now.",
]
"""What the model says in all examples with an agent."""

BLOCK = re.compile(
    r"^```python(?P<options>[^\n]*)\n(?P<program>.*?)^```\n(?:\n*```text output\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


REMOTE = "remote=1"


def examples() -> List[Any]:
    found: List[Any] = []
    for page in PAGES:
        if not (REPOSITORY / page).exists():
            continue
        text = (REPOSITORY / page).read_text()
        for block in BLOCK.finditer(text):
            options = block["options"].split()
            if "run=0" not in options:
                place = f"{page}:{text.count(chr(10), 0, block.start()) + 1}"
                assert options in ([], [REMOTE]), f"{place}: {options}"
                values = place, block["program"], block["output"], REMOTE in options
                found.append(pytest.param(*values, id=place))
    return found


def test_each_page_has_both_languages() -> None:
    pages = [*sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "README.md"]
    languages = {page.name: {name for name in ("python", "ts") if f"\n```{name}" in page.read_text()} for page in pages}
    assert [page for page, found in languages.items() if len(found) < 2] == GENERATED
    pages = [f"docs/{page}" for page in languages if page not in ("README.md", *GENERATED)]
    assert [page for page in pages if page not in PAGES] == []


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The other machine of the pages, which has the same model."""
    directory = tmp_path_factory.mktemp("box")
    model = Model(list(SCRIPT))
    (directory / "conf.toml").write_text(model.configuration)
    (directory / "srv/project").mkdir(parents=True)
    (directory / "srv/project/Makefile").write_text("all:\n\t@echo made\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_KEY", "sk-test")
        server = Server(directory, args=["--config", "conf.toml"])
    yield server
    server.end()
    model.close()


def there(program: str, box: Server) -> str:
    """What is said of another machine, of the one that stands for it."""
    program = program.replace("https://box.example:7377", box.url).replace('"TOKEN"', repr(token_of(box)))
    return program.replace("/srv/", f"{box.directory}/srv/")


@pytest.fixture(scope="module")
def with_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The environment of a user whose local server has a model."""
    state = tmp_path_factory.mktemp("user")
    model = Model(list(SCRIPT))
    (state / "sessile.toml").write_text(model.configuration)
    yield {"XDG_STATE_HOME": str(state), "SESSILE_CONFIG": str(state / "sessile.toml"), "MODEL_KEY": "sk-test"}
    with pytest.MonkeyPatch.context() as patch:
        end_local(state, patch)
    model.close()


@pytest.mark.parametrize("place, program, output, is_remote", examples())
def test_example(
    place: str,
    program: str,
    output: Optional[str],
    is_remote: bool,
    tmp_path: Path,
    with_model: Mapping[str, str],
    box: Server,
) -> None:
    program = there(program, box) if is_remote else program
    (tmp_path / "project/backend").mkdir(parents=True)
    environment = {**os.environ, **with_model, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, timeout=300
    )
    assert done.returncode == 0, place
    if output is not None:
        assert re.fullmatch(re.escape(output).replace("…", "[^\n]*"), done.stdout), f"{place}: {done.stdout}"
