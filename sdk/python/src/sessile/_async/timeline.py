"""Forks, checkpoints, saves, and the layer of a sandbox."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, List, Optional, Sequence, Union, cast

from .._core import requests, trees
from .._core.requests import Repeat
from ..layers import LayerApplied, LayerDiff, LayerDiscarded
from ..records import Checkpoint, Rewound, SavedSession, rows
from .base import AsyncSessionPart

if TYPE_CHECKING:
    from .client import AsyncClient
    from .session import AsyncSession

LONG = 600.0
"""Seconds for what has to wait for a run first, or for many files."""


class AsyncTimeline(AsyncSessionPart):
    """The part of a session that goes back, sideways and elsewhere."""

    async def fork(
        self,
        *,
        files: str = "share",
        name: Optional[str] = None,
        wait: bool = False,
        keep: Optional[bool] = None,
    ) -> AsyncSession:
        """A new session with this one's state; they go separate ways from here.

        >>> result = await session.exec("x=1")
        >>> fork = await session.fork()
        >>> result = await fork.exec("x=2")
        >>> (await session.exec("echo $x")).stdout
        '1\\n'
        >>> await fork.close()

        Args:
            files: ``share`` the workspace, or ``copy`` it.
            name: a name for the new one.
            wait: whether to wait for a run that is going; if not, that is a SessionBusyError.
            keep: whether it lasts when this program has ended. If that is not said, one without a
                name ends with the program that its original ends with, if there is one.
        """
        return (await self.fork_many(1, files=files, name=name, wait=wait, keep=keep))[0]

    async def fork_many(
        self,
        count: int,
        *,
        files: str = "share",
        name: Optional[str] = None,
        wait: bool = False,
        keep: Optional[bool] = None,
    ) -> List[AsyncSession]:
        """Several forks at once."""
        ends = not keep if keep is not None and self._client.is_local else None
        body = {
            "count": count,
            "files": files,
            "name": name,
            "wait": wait or None,
            "ends_with_caller": ends,
        }
        answer = await self._post("/fork", body, patience=LONG)
        kind = type(cast("AsyncSession", self))
        return [kind._of(self._client, row["session_id"], row["work_dir"]) for row in answer["sessions"]]

    async def checkpoint(
        self, name: Optional[str] = None, *, files: bool = False, wait: bool = False
    ) -> Checkpoint:
        """A point to come back to with ``rewind``; with ``files``, those of the workspace, too.

        >>> result = await session.exec("x=before")
        >>> point = await session.checkpoint("ready")
        >>> result = await session.exec("x=after")
        >>> rewound = await session.rewind("ready")
        >>> (await session.exec("echo $x")).stdout
        'before\\n'
        """
        body = {"name": name, "files": files or None, "wait": wait or None}
        return Checkpoint.of(await self._post("/checkpoints", body, patience=LONG))

    async def checkpoints(self) -> List[Checkpoint]:
        """All of them, oldest first."""
        return [Checkpoint.of(row) for row in rows(await self._get("/checkpoints"))]

    async def drop_checkpoint(self, name: Optional[str] = None) -> List[str]:
        """Forgets one, or all. The names of those that are gone."""
        self._check()
        path = f"{self._path}/checkpoints" + (f"/{requests.word(name)}" if name else "")
        answer = await self._connection.ask(requests.delete(path, subject=self._id))
        return list(answer["dropped"])

    async def rewind(
        self,
        checkpoint: Optional[str] = None,
        *,
        runs: Optional[int] = None,
        keep_files: bool = False,
        wait: bool = False,
    ) -> Rewound:
        """Back to a checkpoint, or by so many ``runs``; to the newest checkpoint without either."""
        body = {"checkpoint": checkpoint, "runs": runs, "keep_files": keep_files or None, "wait": wait or None}
        return Rewound.of(await self._post("/rewind", body, patience=LONG))

    async def undo(self, *, keep_files: bool = False, wait: bool = False) -> Rewound:
        """Takes the last run back, in a session that was started with ``auto``."""
        body = {"keep_files": keep_files or None, "wait": wait or None}
        return Rewound.of(await self._post("/undo", body, patience=LONG))

    async def save(self, path: "Union[str, os.PathLike[str]]", *, files: bool = False, wait: bool = False) -> SavedSession:
        """Saves it to a file of this program's machine; with ``files``, those of its workspace, too."""
        self._check()
        request = requests.get(f"{self._path}/save", subject=self._id, patience=LONG, files=files, wait=wait)
        body = await self._connection.open(request)
        place = os.fspath(path)
        size = 0
        try:
            # Under its own name only when it is complete.
            with open(place + ".part", "wb") as file:
                async for piece in body:
                    file.write(piece)
                    size += len(piece)
            os.replace(place + ".part", place)
        finally:
            await body.aclose()
            trees.forget(place + ".part")
        run, left = body.headers.get("sessile-as-of-run"), body.headers.get("sessile-left")
        return SavedSession(place, size, int(run or 0), int(left or 0))

    @classmethod
    async def restore(
        cls,
        path: "Union[str, os.PathLike[str]]",
        *,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
        trust: bool = False,
        keep: Optional[bool] = None,
        client: Optional[AsyncClient] = None,
    ) -> AsyncSession:
        """A new session from a saved file.

        >>> result = await session.python("x = [1, 2]")
        >>> saved = await session.save("work.sessile")
        >>> again = await AsyncSession.restore("work.sessile")
        >>> (await again.eval("x")).result
        '[1, 2]'
        >>> await again.close()

        Args:
            cwd: a directory to go on in, which is empty or not there yet.
            trust: whether to run the code in a file that was saved elsewhere.
            keep: whether it lasts when this program has ended; if that is not said, one with a
                name does.
        """
        from .client import default_client

        return await (client or default_client()).restore(path, cwd=cwd, name=name, trust=trust, keep=keep)

    # The layer of a sandbox

    async def diff(self, paths: Union[str, Sequence[str]] = (), *, stat: bool = False) -> str:
        """What a sandboxed session has changed in its workspace, as a unified diff, of all paths or of
        some; with ``stat``, a table of the paths.

        >>> async with AsyncSession(sandbox="development") as boxed:
        ...     result = await boxed.exec("echo one > new.txt")
        ...     text = await boxed.diff()
        >>> print(text.splitlines()[-1])
        +one
        """
        return (await self.changes(paths, stat=stat)).diff

    async def changes(self, paths: Union[str, Sequence[str]] = (), *, stat: bool = False) -> LayerDiff:
        """The same with each path that differs, and whether it has changed in the real workspace, too."""
        named = ",".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in _listed(paths))
        self._check()
        request = requests.get(
            f"{self._path}/diff", subject=self._id, patience=LONG, path=named or None, stat=stat
        )
        return LayerDiff.of(await self._connection.ask(request))

    async def apply(self, paths: Union[str, Sequence[str]] = (), *, force: bool = False) -> LayerApplied:
        """Brings what a sandboxed session has changed into the real workspace: all, or ``paths``.

        Args:
            force: whether to replace what has changed there meanwhile; if not, that is a ConflictError.
        """
        body = {"paths": _listed(paths) or None, "force": force}
        return LayerApplied.of(await self._post("/apply", body, patience=LONG))

    async def discard(self, paths: Union[str, Sequence[str]] = ()) -> LayerDiscarded:
        """Forgets what a sandboxed session has changed: all, or ``paths``. It sees the real files again."""
        body = {"paths": _listed(paths) or None}
        return LayerDiscarded.of(await self._post("/discard", body, repeat=Repeat.SAFE, patience=LONG))


def _listed(paths: Union[str, Sequence[str]]) -> List[str]:
    return [paths] if isinstance(paths, str) else list(paths)


