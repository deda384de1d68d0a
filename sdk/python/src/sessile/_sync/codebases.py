# Made from ../_async by scripts/make_sync.py. Do not edit.
"""Codebases: directories at the server, reached through the files of a session that is there for
nothing else."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, List, Optional, Union

from ..codebases import Codebase, UploadResult, inner_path
from ..errors import CodebaseNotFoundError, FileNotFoundError, SandboxError, SessionClosedError, UploadError
from ..records import FileInfo

if TYPE_CHECKING:
    from .session import Session

FOLDER = "sessile-codebases"
"""In the server's first workspace root; on this machine in the user's directory for data."""


class Codebases:
    """The part of a client that keeps codebases."""

    _library_session: "Optional[Session]"

    @property
    def is_local(self) -> bool:
        raise NotImplementedError

    def session(self, language: Optional[str] = None, **options: Any) -> Session:
        raise NotImplementedError

    def _library(self) -> Session:
        """The session whose files the codebases are."""
        there = self._library_session
        if there is not None:
            try:
                there.stat(".")
                return there
            except SessionClosedError:
                pass
        session = self.session(workspace=_local_folder() if self.is_local else None, idle_timeout="2m")
        if not self.is_local:
            session.make_directory(FOLDER)
        self._library_session = session
        return session

    def _place(self, codebase_id: str, path: str = "") -> str:
        if not codebase_id.startswith("cb_") or not codebase_id[3:].isalnum():
            raise CodebaseNotFoundError(codebase_id)
        base = codebase_id if self.is_local else f"{FOLDER}/{codebase_id}"
        inner = inner_path(path)
        return f"{base}/{inner}" if inner else base

    def _codebase_directory(self, codebase_id: str) -> str:
        """The workspace of a sandbox that is made from it."""
        self.get_codebase(codebase_id)
        place = self._place(codebase_id)
        return os.path.join(_local_folder(), place) if self.is_local else place

    def create_codebase(self, name: str, owner_id: str = "") -> Codebase:
        """A place for files, to make sandboxes from.

        >>> codebase = client.create_codebase("example", "me")
        >>> upload = client.upload_file(codebase.id, "src/main.py", b"print(42)")
        >>> client.download_file(codebase.id, "src/main.py")
        b'print(42)'
        >>> client.delete_codebase(codebase.id)
        """
        library = self._library()
        codebase_id = f"cb_{os.urandom(8).hex()}"
        place = self._place(codebase_id)
        library.make_directory(place)
        library.write_file(f"{place}.json", json.dumps({"name": name, "owner_id": owner_id}))
        return Codebase(codebase_id, name, owner_id)

    def get_codebase(self, codebase_id: str) -> Codebase:
        library = self._library()
        place = self._place(codebase_id)
        try:
            about = json.loads(library.read_file(f"{place}.json"))
            files = [file for file in library.list_files(place, recursive=True) if not file.is_dir]
            made = library.stat(f"{place}.json")
        except FileNotFoundError:
            raise CodebaseNotFoundError(codebase_id) from None
        changes = [file.modified_at for file in files if file.modified_at]
        return Codebase(
            codebase_id,
            about["name"],
            about["owner_id"],
            sum(file.size for file in files),
            len(files),
            made.modified_at,
            max(changes) if changes else made.modified_at,
        )

    def list_codebases(self, owner_id: Optional[str] = None) -> List[Codebase]:
        library = self._library()
        found: List[Codebase] = []
        for file in library.list_files("" if self.is_local else FOLDER):
            if file.is_dir and file.name.startswith("cb_"):
                codebase = self.get_codebase(file.name)
                if owner_id is None or codebase.owner_id == owner_id:
                    found.append(codebase)
        return found

    def delete_codebase(self, codebase_id: str) -> None:
        library = self._library()
        place = self._place(codebase_id)
        try:
            library.remove(place, recursive=True)
            library.remove(f"{place}.json")
        except FileNotFoundError:
            raise CodebaseNotFoundError(codebase_id) from None

    def upload_file(self, codebase_id: str, file_path: str, content: Union[str, bytes]) -> UploadResult:
        content = content.encode() if isinstance(content, str) else content
        library = self._library()
        if not library.exists(self._place(codebase_id)):
            raise CodebaseNotFoundError(codebase_id)
        try:
            library.write_file(self._place(codebase_id, file_path), content)
        except SandboxError as error:
            raise UploadError(file_path, codebase_id, str(error)) from error
        import hashlib

        return UploadResult(codebase_id, file_path, len(content), hashlib.sha256(content).hexdigest())

    def download_file(self, codebase_id: str, file_path: str) -> bytes:
        library = self._library()
        try:
            return library.read_file_bytes(self._place(codebase_id, file_path))
        except FileNotFoundError:
            self.get_codebase(codebase_id)
            raise FileNotFoundError(codebase_id, file_path) from None

    def list_files(self, codebase_id: str, path: str = "", recursive: bool = False) -> List[FileInfo]:
        """Files of a codebase; their paths are relative to it."""
        library = self._library()
        place = self._place(codebase_id)
        try:
            files = library.list_files(self._place(codebase_id, path), recursive=recursive)
        except FileNotFoundError:
            self.get_codebase(codebase_id)
            raise FileNotFoundError(codebase_id, path) from None
        return [file.relative_to(place) for file in files]


def _local_folder() -> str:
    """Not in the directory for state, which sandboxes are kept out of."""
    given = os.environ.get("XDG_DATA_HOME", "")
    home = given if os.path.isabs(given) else os.path.expanduser("~/.local/share")
    folder = os.path.join(home, "sessile", "codebases")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder
