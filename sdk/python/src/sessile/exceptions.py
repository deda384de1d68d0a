"""The errors, under the name that AgentFense's users import them from; see :mod:`sessile.errors`."""

from __future__ import annotations

from .errors import *  # noqa: F403
from .errors import __all__ as __all__
