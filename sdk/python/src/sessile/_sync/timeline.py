# Made from ../_async by scripts/make_sync.py. Do not edit.
"""Forks, checkpoints, saves, and the layer of a sandbox."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, List, Optional, Sequence, Union, cast

from .._core import requests, trees
from .._core.requests import Repeat
from ..layers import LayerApplied, LayerDiff, LayerDiscarded
from ..records import Checkpoint, Rewound, SavedSession, rows
from .base import SessionPart

if TYPE_CHECKING:
    from .client import Client
    from .session import Session

LONG = 600.0
"""Seconds for what has to wait for a run first, or for many files."""


class Timeline(SessionPart):
    """The part of a session that goes back, sideways and elsewhere."""

    def fork(
        self,
        *,
        files: str = "share",
        name: Optional[str] = None,
        wait: bool = False,
        keep: Optional[bool] = None,
    ) -> Session:
        """A new session with this one's state; they go separate ways from here.

        >>> result = session.exec("x=1")
        >>> fork = session.fork()
        >>> result = fork.exec("x=2")
        >>> session.exec("echo $x").stdout
        '1\\n'
        >>> fork.close()

        Args:
            files: ``share`` the workspace, or ``copy`` it.
            name: a name for the new one.
            wait: whether to wait for a run that is going; if not, that is a SessionBusyError.
            keep: whether it lasts when this program has ended. If that is not said, one without a
                name ends with the program that its original ends with, if there is one.
        """
        return self.fork_many(1, files=files, name=name, wait=wait, keep=keep)[0]

    def fork_many(
        self,
        count: int,
        *,
        files: str = "share",
        name: Optional[str] = None,
        wait: bool = False,
        keep: Optional[bool] = None,
    ) -> List[Session]:
        """Several forks at once."""
        ends = not keep if keep is not None and self._client.is_local else None
        body = {
            "count": count,
            "files": files,
            "name": name,
            "wait": wait or None,
            "ends_with_caller": ends,
        }
        answer = self._post("/fork", body, patience=LONG)
        kind = type(cast("Session", self))
        return [kind._of(self._client, row["session_id"], row["work_dir"]) for row in answer["sessions"]]

    def checkpoint(
        self, name: Optional[str] = None, *, files: bool = False, wait: bool = False
    ) -> Checkpoint:
        """A point to come back to with ``rewind``; with ``files``, those of the workspace, too.

        >>> result = session.exec("x=before")
        >>> point = session.checkpoint("ready")
        >>> result = session.exec("x=after")
        >>> rewound = session.rewind("ready")
        >>> session.exec("echo $x").stdout
        'before\\n'
        """
        body = {"name": name, "files": files or None, "wait": wait or None}
        return Checkpoint.of(self._post("/checkpoints", body, patience=LONG))

    def checkpoints(self) -> List[Checkpoint]:
        """All of them, oldest first."""
        return [Checkpoint.of(row) for row in rows(self._get("/checkpoints"))]

    def drop_checkpoint(self, name: Optional[str] = None) -> List[str]:
        """Forgets one, or all. The names of those that are gone."""
        self._check()
        path = f"{self._path}/checkpoints" + (f"/{requests.word(name)}" if name else "")
        answer = self._connection.ask(requests.delete(path, subject=self._id))
        return list(answer["dropped"])

    def rewind(
        self,
        checkpoint: Optional[str] = None,
        *,
        runs: Optional[int] = None,
        keep_files: bool = False,
        wait: bool = False,
    ) -> Rewound:
        """Back to a checkpoint, or by so many ``runs``; to the newest checkpoint without either."""
        body = {"checkpoint": checkpoint, "runs": runs, "keep_files": keep_files or None, "wait": wait or None}
        return Rewound.of(self._post("/rewind", body, patience=LONG))

    def undo(self, *, keep_files: bool = False, wait: bool = False) -> Rewound:
        """Takes the last run back, in a session that was started with ``auto``."""
        body = {"keep_files": keep_files or None, "wait": wait or None}
        return Rewound.of(self._post("/undo", body, patience=LONG))

    def save(self, path: "Union[str, os.PathLike[str]]", *, files: bool = False, wait: bool = False) -> SavedSession:
        """Saves it to a file of this program's machine; with ``files``, those of its workspace, too."""
        self._check()
        request = requests.get(f"{self._path}/save", subject=self._id, patience=LONG, files=files, wait=wait)
        body = self._connection.open(request)
        place = os.fspath(path)
        size = 0
        try:
            # Under its own name only when it is complete.
            with open(place + ".part", "wb") as file:
                for piece in body:
                    file.write(piece)
                    size += len(piece)
            os.replace(place + ".part", place)
        finally:
            body.close()
            trees.forget(place + ".part")
        run, left = body.headers.get("sessile-as-of-run"), body.headers.get("sessile-left")
        return SavedSession(place, size, int(run or 0), int(left or 0))

    @classmethod
    def restore(
        cls,
        path: "Union[str, os.PathLike[str]]",
        *,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
        trust: bool = False,
        keep: Optional[bool] = None,
        client: Optional[Client] = None,
    ) -> Session:
        """A new session from a saved file.

        >>> result = session.python("x = [1, 2]")
        >>> saved = session.save("work.sessile")
        >>> again = Session.restore("work.sessile")
        >>> again.eval("x").result
        '[1, 2]'
        >>> again.close()

        Args:
            cwd: a directory to go on in, which is empty or not there yet.
            trust: whether to run the code in a file that was saved elsewhere.
            keep: whether it lasts when this program has ended; if that is not said, one with a
                name does.
        """
        from .client import default_client

        return (client or default_client()).restore(path, cwd=cwd, name=name, trust=trust, keep=keep)

    # The layer of a sandbox

    def diff(self, paths: Union[str, Sequence[str]] = (), *, stat: bool = False) -> str:
        """What a sandboxed session has changed in its workspace, as a unified diff, of all paths or of
        some; with ``stat``, a table of the paths.

        >>> with Session(sandbox="development") as boxed:
        ...     result = boxed.exec("echo one > new.txt")
        ...     text = boxed.diff()
        >>> print(text.splitlines()[-1])
        +one
        """
        return self.changes(paths, stat=stat).diff

    def changes(self, paths: Union[str, Sequence[str]] = (), *, stat: bool = False) -> LayerDiff:
        """The same with each path that differs, and whether it has changed in the real workspace, too."""
        named = ",".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in _listed(paths))
        self._check()
        request = requests.get(
            f"{self._path}/diff", subject=self._id, patience=LONG, path=named or None, stat=stat
        )
        return LayerDiff.of(self._connection.ask(request))

    def apply(self, paths: Union[str, Sequence[str]] = (), *, force: bool = False) -> LayerApplied:
        """Brings what a sandboxed session has changed into the real workspace: all, or ``paths``.

        Args:
            force: whether to replace what has changed there meanwhile; if not, that is a ConflictError.
        """
        body = {"paths": _listed(paths) or None, "force": force}
        return LayerApplied.of(self._post("/apply", body, patience=LONG))

    def discard(self, paths: Union[str, Sequence[str]] = ()) -> LayerDiscarded:
        """Forgets what a sandboxed session has changed: all, or ``paths``. It sees the real files again."""
        body = {"paths": _listed(paths) or None}
        return LayerDiscarded.of(self._post("/discard", body, repeat=Repeat.SAFE, patience=LONG))


def _listed(paths: Union[str, Sequence[str]]) -> List[str]:
    return [paths] if isinstance(paths, str) else list(paths)


