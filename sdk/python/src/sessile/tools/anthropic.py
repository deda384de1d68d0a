"""Anthropic: a tool of our own, and a handler for the bash tool that its models know."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ..errors import SandboxError
from .shell import DESCRIPTION, NAME, OUTPUT, AnySession, ShellTool, async_of, sync_of, text_of

__all__ = ["AnthropicTool", "BashTool", "bash_tool", "tool"]


class AnthropicTool(ShellTool):
    """``definition`` goes into ``tools=[…]``; ``answer(block)`` is the result of a ``tool_use`` block."""

    @property
    def definition(self) -> Dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self.schema}

    def answer(self, block: Any) -> Dict[str, Any]:
        return _tool_result(block.id, self.call(block.input))


def tool(session: AnySession, *, name: str = NAME, description: str = DESCRIPTION) -> AnthropicTool:
    """A session as a tool: shell, Python and Node."""
    return AnthropicTool(session, name=name, description=description)


class BashTool:
    """The bash tool that models of Anthropic were taught, on a session.

    ``definition`` goes into ``tools=[…]``. ``call({"command": …})`` runs a command;
    ``{"restart": true}`` gives fresh interpreters in the same session.
    """

    def __init__(self, session: AnySession, *, timeout: Optional[float] = 120.0) -> None:
        self.definition: Dict[str, Any] = {"type": "bash_20250124", "name": "bash"}
        self.timeout = timeout
        self._sync = sync_of(session)
        self._async = async_of(session)

    def call(self, given: Mapping[str, Any]) -> str:
        wanted = _wanted(given)
        if wanted is None:
            return _NOTHING
        try:
            if wanted is _RESTART:
                self._sync.reset()
                return _RESTARTED
            result = self._sync.exec(wanted, self.timeout, language="bash", max_output=OUTPUT)
        except SandboxError as error:
            return f"Error: {error}"
        return text_of(result)

    async def acall(self, given: Mapping[str, Any]) -> str:
        wanted = _wanted(given)
        if wanted is None:
            return _NOTHING
        try:
            if wanted is _RESTART:
                await self._async.reset()
                return _RESTARTED
            result = await self._async.exec(wanted, self.timeout, language="bash", max_output=OUTPUT)
        except SandboxError as error:
            return f"Error: {error}"
        return text_of(result)

    def answer(self, block: Any) -> Dict[str, Any]:
        """The result of a ``tool_use`` block."""
        return _tool_result(block.id, self.call(block.input))


_RESTARTED = "tool has been restarted."
_NOTHING = "Error: no command provided."


_RESTART = object()
"""Not a string, so that no command is it."""


def _wanted(given: Mapping[str, Any]) -> Any:
    """A command, a restart, or None."""
    if given.get("restart"):
        return _RESTART
    command = given.get("command")
    return command if isinstance(command, str) else None


def _tool_result(id: str, text: str) -> Dict[str, Any]:
    result: Dict[str, Any] = {"type": "tool_result", "tool_use_id": id, "content": text}
    if text.startswith("Error: "):
        result["is_error"] = True
    return result


def bash_tool(session: AnySession, *, timeout: Optional[float] = 120.0) -> BashTool:
    """A handler for the bash tool: ``tools=[bash.definition]``, then ``bash.answer(block)``."""
    return BashTool(session, timeout=timeout)
