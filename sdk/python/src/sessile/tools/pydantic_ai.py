"""PydanticAI."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Tool

from .shell import DESCRIPTION, NAME, AnySession, ShellTool

__all__ = ["tool"]


def tool(session: AnySession, *, name: str = NAME, description: str = DESCRIPTION) -> Tool[Any]:
    """A session as a tool: ``Agent(model, tools=[tool(session)])``."""
    shell = ShellTool(session, name=name, description=description)

    async def run(**given: Any) -> str:
        return await shell.acall(given)

    schema = {**shell.schema, "required": ["command"]}
    return Tool.from_schema(run, name=name, description=description, json_schema=schema, sequential=True)
