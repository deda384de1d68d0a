"""Makes the wheel for all other machines: the SDK without the program.

    python scripts/without_program.py WHEEL

pip takes a wheel for the machine where there is one, and this one elsewhere: a server on another
machine can be used from there, and a local one with the program that ``SESSILE_BIN`` names. Prints
the path of the wheel, which is beside the given one.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path
from typing import List

TAG = "py3-none-any"


def row(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def of_any_machine(description: str) -> str:
    """The file WHEEL, which says what a wheel is for."""
    description = re.sub(r"^Root-Is-Purelib: .*$", "Root-Is-Purelib: true", description, flags=re.MULTILINE)
    lines = [line for line in description.splitlines() if not line.startswith("Tag: ")]
    return "\n".join([*lines, f"Tag: {TAG}"]) + "\n"


def make(wheel: Path) -> Path:
    name, version, *_ = wheel.stem.split("-")
    made = wheel.with_name(f"{name}-{version}-{TAG}.whl")
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        rows: List[str] = []
        record = ""
        for entry in given.infolist():
            if entry.filename.endswith(".dist-info/RECORD"):
                record = entry.filename
            elif ".data/" not in entry.filename:
                content = given.read(entry)
                if entry.filename.endswith(".dist-info/WHEEL"):
                    content = of_any_machine(content.decode()).encode()
                out.writestr(entry, content)
                rows.append(row(entry.filename, content))
        out.writestr(record, "\n".join([*rows, f"{record},,"]) + "\n")
    return made


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
