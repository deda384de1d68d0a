"""Languages, by their own names and by those of their programs."""

from __future__ import annotations

from typing import Optional

from ..errors import InvalidConfigurationError

PROGRAMS = {"bash": "bash", "sh": "sh", "zsh": "zsh", "python": "python3", "node": "node"}


def program_of(language: Optional[str], shell: Optional[str]) -> Optional[str]:
    """What the server is asked to start. ``/bin/sh`` is bash, so that ``source`` works, whatever the
    system's own is; ``sh`` is that one.

    >>> program_of("python", None), program_of(None, "/bin/sh"), program_of(None, None)
    ('python3', 'bash', None)
    """
    if language is None:
        if shell in ("/bin/sh", "/usr/bin/sh"):
            return "bash"
        known = shell is not None and shell.rsplit("/", 1)[-1] in PROGRAMS.values()
        return shell.rsplit("/", 1)[-1] if shell is not None and known else shell
    if shell is not None:
        raise InvalidConfigurationError("pass language or shell, not both")
    if language not in PROGRAMS:
        names = ", ".join(PROGRAMS)
        raise InvalidConfigurationError(f"there is no language {language!r}", hint=f"there are {names}")
    return PROGRAMS[language]
