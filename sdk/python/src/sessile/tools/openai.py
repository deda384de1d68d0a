"""OpenAI: a function tool for both of its APIs, and a tool of the Agents SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict

from .shell import DESCRIPTION, NAME, AnySession, ShellTool

if TYPE_CHECKING:
    from agents import FunctionTool

__all__ = ["OpenAITool", "agents_tool", "function_tool"]


class OpenAITool(ShellTool):
    """``definition`` goes into ``tools=[…]`` of Chat Completions, ``responses_definition`` into that
    of the Responses API; ``call(arguments)`` answers a call, whose arguments are JSON."""

    @property
    def definition(self) -> Dict[str, Any]:
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.schema,
            "strict": True,
        }
        return {"type": "function", "function": function}

    @property
    def responses_definition(self) -> Dict[str, Any]:
        return {"type": "function", **self.definition["function"]}

    def answer(self, tool_call: Any) -> Dict[str, Any]:
        """The message that answers a tool call of Chat Completions."""
        return {
            "role": "tool",
            "tool_call_id": tool_call.id,
            "content": self.call(tool_call.function.arguments),
        }


def function_tool(session: AnySession, *, name: str = NAME, description: str = DESCRIPTION) -> OpenAITool:
    """A session as a function tool.

    ``client.chat.completions.create(…, tools=[tool.definition])``, and then
    ``messages.append(tool.answer(tool_call))``.
    """
    return OpenAITool(session, name=name, description=description)


def agents_tool(session: AnySession, *, name: str = NAME, description: str = DESCRIPTION) -> FunctionTool:
    """A session as a tool of the Agents SDK: ``Agent(…, tools=[agents_tool(session)])``."""
    from agents import FunctionTool

    tool = ShellTool(session, name=name, description=description)

    async def invoke(_: Any, given: str) -> str:
        return await tool.acall(given)

    return FunctionTool(name, description, tool.schema, invoke)
