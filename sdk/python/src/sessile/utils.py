"""Directories as AgentFense's examples walk them, file by file. ``Session.upload`` takes a whole tree."""

from __future__ import annotations

import os
import re
from typing import Iterator, List, Optional, Sequence, Tuple, Union

from ._core import trees
from .errors import InvalidConfigurationError

__all__ = ["count_files", "generate_codebase_name", "human_readable_size", "parse_ignore_file", "walk_directory"]

_Path = Union[str, "os.PathLike[str]"]


def walk_directory(path: _Path, ignore_patterns: Optional[Sequence[str]] = None) -> Iterator[Tuple[str, bytes]]:
    """Each file below a directory: its path relative to that, and its content. Links are left out.

    >>> import pathlib
    >>> pathlib.Path("tree/src").mkdir(parents=True)
    >>> written = pathlib.Path("tree/src/a.py").write_text("1")
    >>> written = pathlib.Path("tree/a.log").write_text("noise")
    >>> list(walk_directory("tree", ["*.log"]))
    [('src/a.py', b'1')]
    """
    for place, name in _files(path, ignore_patterns):
        with open(place, "rb") as file:
            yield name, file.read()


def count_files(path: _Path, ignore_patterns: Optional[Sequence[str]] = None) -> int:
    return sum(1 for _ in _files(path, ignore_patterns))


def parse_ignore_file(path: _Path) -> List[str]:
    """The patterns of a ``.gitignore``, to pass as ``ignore_patterns``. None when it is not there.
    Exceptions (``!kept``) are not patterns of what is ignored, and left out.

    >>> import pathlib
    >>> written = pathlib.Path(".gitignore").write_text("# ours\\n\\n*.log\\n!kept.log\\nbuild/\\n")
    >>> parse_ignore_file(".gitignore")
    ['*.log', 'build/']
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        return []
    return [line for line in lines if line and not line.startswith(("#", "!"))]


def human_readable_size(size: int) -> str:
    """
    >>> human_readable_size(512), human_readable_size(1536)
    ('512 B', '1.5 KB')
    """
    amount, unit = float(size), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def generate_codebase_name(path: _Path) -> str:
    """
    >>> generate_codebase_name("/home/me/My project")
    'My-project'
    """
    name = os.path.basename(os.path.abspath(os.fspath(path)))
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "codebase"


def _files(path: _Path, ignore_patterns: Optional[Sequence[str]]) -> Iterator[Tuple[str, str]]:
    root = os.fspath(path)
    if not os.path.isdir(root):
        raise InvalidConfigurationError(f"Path is not a directory: {root}", hint="pass one that is there")
    for place, name in trees.entries(root, "", ignore_patterns or ()):
        if os.path.isfile(place) and not os.path.islink(place):
            yield place, name
