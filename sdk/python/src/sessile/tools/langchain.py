"""LangChain and LangGraph."""

from __future__ import annotations

from langchain_core.tools import StructuredTool

from .shell import DESCRIPTION, NAME, AnySession, ShellTool

__all__ = ["tool"]


def tool(session: AnySession, *, name: str = NAME, description: str = DESCRIPTION) -> StructuredTool:
    """A session as a tool, sync and async: ``create_agent(model, tools=[tool(session)])``."""
    shell = ShellTool(session, name=name, description=description)

    def run(**given: object) -> str:
        return shell.call(given)

    async def arun(**given: object) -> str:
        return await shell.acall(given)

    schema = {**shell.schema, "required": ["command"]}
    return StructuredTool.from_function(
        func=run, coroutine=arun, name=name, description=description, args_schema=schema, infer_schema=False
    )
