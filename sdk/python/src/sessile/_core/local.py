"""The user's own server: where it is, and how it is started when it is not there.

``sessile serve --local --background`` finds or starts it, under a lock of its own, so that
any number of programs may do this at once. Here only the threads of one program are kept
from doing it all together.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import threading
from typing import List, Mapping, Optional, Tuple

from ..errors import BinaryNotFoundError, ConnectionError

START_PATIENCE = 60.0
"""Seconds for the program to answer. It takes some milliseconds."""

LONGEST_PATH = 107
"""Bytes of a socket's path that the system takes."""

FOREIGN = (errno.ENOEXEC, errno.ENOENT)
"""Why a program that is there is not run: another architecture's, or another C library's."""

_starting = threading.Lock()


def _forget_the_lock() -> None:
    # Another thread may have held it when this process was forked.
    global _starting
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_lock)


def state_directory(environment: Mapping[str, str]) -> str:
    """As ``sessile`` has it: below XDG_STATE_HOME, or ``~/.local/state``."""
    given = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):
        return os.path.join(given, "sessile")
    home = environment.get("HOME") or os.path.expanduser("~")
    if os.path.isabs(home):
        return os.path.join(home, ".local/state/sessile")
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"sessile-state-{os.geteuid()}")


def socket_path(environment: Mapping[str, str]) -> str:
    return os.path.join(state_directory(environment), "local.sock")


class Address:
    """A socket by a path that fits into an address. A longer one is reached through its directory,
    which is kept open."""

    def __init__(self, path: str) -> None:
        """Fails as connecting would when the directory is not there."""
        self._folder: Optional[int] = None
        self.path = path
        if len(os.fsencode(path)) > LONGEST_PATH:
            self._folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
            self.path = f"/proc/self/fd/{self._folder}/{os.path.basename(path)}"

    def close(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            os.close(folder)

    __del__ = close


def find_binary(environment: Mapping[str, str]) -> str:
    """SESSILE_BIN, else the program that was installed with this package, else the one in PATH."""
    given = environment.get("SESSILE_BIN")
    if given:
        if is_program(given):
            return given
        raise BinaryNotFoundError(
            given, message=f"SESSILE_BIN is {given!r}, which is not a program.", hint="correct it, or unset it"
        )
    for folder in _script_folders():
        installed = os.path.join(folder, "sessile")
        if is_program(installed):
            return installed
    import shutil

    found = shutil.which("sessile", path=environment.get("PATH"))
    if found is None:
        system, machine = _platform()
        raise BinaryNotFoundError(
            "sessile",
            message=f"There is no sessile program to start a local server with, for {system} on {machine}.",
            hint=_how_to_get_one(system),
        )
    return found


def _platform() -> Tuple[str, str]:
    import platform

    return platform.system(), platform.machine()


def _how_to_get_one(system: str) -> str:
    if system != "Linux":
        return "sessions live on Linux: set SESSILE_URL to a server there, or give its address to Client"
    return (
        "`pip install sessile` brings it where there is a wheel for the machine; otherwise build it from the "
        "source (`cargo build --release -p sessile`) and set SESSILE_BIN to it, or SESSILE_URL to a server"
    )


def _script_folders() -> List[str]:
    import sysconfig

    folders = [sysconfig.get_path("scripts")]
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", user))
    # `pip install --target` has its programs beside the packages.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders.append(os.path.join(os.path.dirname(package), "bin"))
    return folders


def is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False


def ensure(path: str, environment: Optional[Mapping[str, str]] = None) -> None:
    """Starts the server, unless it is there."""
    environment = os.environ if environment is None else environment
    with _starting:
        if not answers(path):
            _start(path, find_binary(environment), environment)


def answers(path: str) -> bool:
    """Whether something listens there."""
    try:
        with socket.socket(socket.AF_UNIX) as trial:
            address = Address(path)
            trial.connect(address.path)
            address.close()
    except OSError:
        return False
    return True


def _start(path: str, binary: str, environment: Mapping[str, str]) -> None:
    import subprocess

    command = [binary, "serve", "--local", "--background"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=START_PATIENCE,
            env=dict(environment),
            # A server of many directories stands in none of them.
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if isinstance(error, OSError) and error.errno in FOREIGN:
            raise _foreign(binary) from error
        raise ConnectionError(path, f"`{' '.join(command)}`: {error}") from error
    if done.returncode != 0 or not done.stdout.startswith(b"{"):
        _check_program(binary)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ConnectionError(path, f"`{' '.join(command)}` failed: {said}", code=_FAILED)
    try:
        started = json.loads(done.stdout)["socket"]
    except (ValueError, KeyError, TypeError):
        said = done.stdout.decode("utf-8", "replace").strip()
        raise ConnectionError(path, f"`{' '.join(command)}` said {said!r}", code=_FAILED) from None
    if started != path:
        raise ConnectionError(
            path,
            f"the server is at {started}",
            code=_FAILED,
            hint="SESSILE_BIN is of another version than this package",
        )


_FAILED = "local_server_failed"


def _foreign(binary: str) -> BinaryNotFoundError:
    system, machine = _platform()
    return BinaryNotFoundError(
        binary,
        message=f"{binary!r} does not run here, on {system} on {machine}: it was built for another machine.",
        hint=_how_to_get_one(system),
    )


def _check_program(binary: str) -> None:
    """Says so when it is another program than ours."""
    import subprocess

    try:
        done = subprocess.run(
            [binary, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=START_PATIENCE,
        )
        is_ours = done.stdout.startswith(b"sessile ")
    except (OSError, subprocess.TimeoutExpired):
        is_ours = False
    if not is_ours:
        raise BinaryNotFoundError(
            binary,
            message=f"{binary!r} is not sessile.",
            hint="set SESSILE_BIN to the sessile program, or unset it",
        )
