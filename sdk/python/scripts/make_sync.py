"""Makes ``sessile/_sync`` from ``sessile/_async``.

Sync and async are one implementation: the async one is written, and this takes the words
``async`` and ``await`` out of it. A test has it compare what is there with what it would make.

    python scripts/make_sync.py [--check]

Lines between ``# [async only]`` and ``# [end]`` are left out; the rest of a line after
``# [sync]`` is put in.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Dict, List

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "sessile"
BY_HAND = {"_io.py"}

WORDS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\b__aiter__\b", "__iter__"),
    (r"\b__anext__\b", "__next__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\bhandle_async_request\b", "handle_request"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAwaitable, ", ""),
    (r"\bAsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\b_async\b", "_sync"),
    (r"\bAsync(?=[A-Z])", ""),
]

HEAD = "# Made from ../_async by scripts/make_sync.py. Do not edit.\n"


def sync(text: str) -> str:
    lines: List[str] = []
    is_left_out = False
    for line in text.splitlines(keepends=True):
        mark = line.strip()
        if mark == "# [async only]":
            is_left_out = True
        elif mark == "# [end]":
            is_left_out = False
        elif not is_left_out:
            lines.append(line.replace("# [sync] ", ""))
    made = "".join(lines)
    for pattern, word in WORDS:
        made = re.sub(pattern, word, made)
    # `(await x).y` leaves its brackets behind; they do no harm, and read badly.
    made = re.sub(r"\((\w+(?:\.\w+)*\([^()]*\))\)(?=[.\[])", r"\1", made)
    return HEAD + made


def made() -> Dict[Path, str]:
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    texts = {PACKAGE / "_sync" / source.name: sync(source.read_text()) for source in sources}
    return {path: text for path, text in texts.items() if path.name not in BY_HAND}


def main() -> int:
    files = made()
    there = {path for path in (PACKAGE / "_sync").glob("*.py") if path.name not in BY_HAND}
    stale = [path for path, text in files.items() if path not in there or path.read_text() != text]
    surplus = there - set(files)
    if "--check" in sys.argv:
        for path in [*stale, *surplus]:
            print(f"{path} is out of date; run scripts/make_sync.py")
        return 1 if stale or surplus else 0
    for path in stale:
        path.write_text(files[path])
    for path in surplus:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
