"""Tools of frameworks, with the frameworks themselves: their own code makes the calls, and only
the model's words are ours."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List

import pytest

from conftest import framework
from sessile import AsyncSession, Session


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def test_openai_function_tool(session: Session) -> None:
    openai = framework("openai")
    from openai.types.chat import ChatCompletionMessageToolCall

    from sessile.tools.openai import function_tool

    tool = function_tool(session)
    # Their own check of strict schemas, and their own type of a call.
    from openai.lib._pydantic import _ensure_strict_json_schema

    schema = tool.definition["function"]["parameters"]
    assert _ensure_strict_json_schema(json.loads(json.dumps(schema)), path=(), root=schema) == schema
    assert tool.responses_definition["name"] == "shell" and openai.__version__

    def call(**given: Any) -> Dict[str, Any]:
        function = {"name": "shell", "arguments": json.dumps(given)}
        return tool.answer(ChatCompletionMessageToolCall(id="c1", type="function", function=function))

    call(command="cd /usr; x=1", language=None, timeout=None)
    answer = call(command="pwd; echo $x; exit 2", language=None, timeout=None)
    assert answer == {"role": "tool", "tool_call_id": "c1", "content": "/usr\n1\n[exit code 2]"}
    assert call(command="6 * 7", language="python", timeout=60)["content"] == "42"
    assert call(cmd="ls")["content"].startswith("Error: command is required")


def test_openai_agents_sdk(session: Session) -> None:
    agents = framework("agents")
    from agents.items import ModelResponse
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from sessile.tools.openai import agents_tool

    seen: List[Any] = []

    class Scripted(agents.Model):  # type: ignore[name-defined,misc]
        """Asks for one run, and then says what it got."""

        async def get_response(self, *, input: Any, **rest: Any) -> ModelResponse:
            outputs = [each for each in input if each.get("type") == "function_call_output"]
            if not outputs:
                given = json.dumps({"command": "echo $((40+2))", "language": None, "timeout": None})
                item: Any = ResponseFunctionToolCall(
                    id="f", call_id="c", type="function_call", name="shell", arguments=given
                )
            else:
                seen.extend(outputs)
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[item], usage=agents.Usage(), response_id=None)

        def stream_response(self, *args: Any, **rest: Any) -> Any:
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    agent = agents.Agent(name="a", model=Scripted(), tools=[agents_tool(session)])
    result = agents.Runner.run_sync(agent, "go")
    assert result.final_output == "done" and seen[0]["output"] == "42"


def test_a_model_is_told_of_jobs_that_have_failed(session: Session) -> None:
    from sessile.tools.anthropic import bash_tool

    ended = "& while kill -0 $! 2>/dev/null; do :; done"
    bash = bash_tool(session, timeout=60)
    assert bash.call({"command": f"(exit 3) {ended}"}) == "[background job ended: (exit 3), exit code 3]"
    assert bash.call({"command": f"(exit 0) {ended}"}) == "[no output]"


def test_anthropic_tool_and_bash_tool(session: Session) -> None:
    framework("anthropic")
    from anthropic.types import ToolBash20250124Param, ToolParam, ToolUseBlock
    from pydantic import TypeAdapter

    from sessile.tools.anthropic import bash_tool, tool

    shell, bash = tool(session), bash_tool(session, timeout=60)
    TypeAdapter(ToolParam).validate_python(shell.definition)
    TypeAdapter(ToolBash20250124Param).validate_python(bash.definition)

    def use(handler: Any, **given: Any) -> Dict[str, Any]:
        block = ToolUseBlock(id="t1", type="tool_use", name="bash", input=given)
        answer: Dict[str, Any] = handler.answer(block)
        return answer

    use(bash, command="x=5")
    assert use(bash, command="echo $x") == {"type": "tool_result", "tool_use_id": "t1", "content": "5"}
    assert use(bash, restart=True)["content"] == "tool has been restarted."
    assert use(bash, command="echo [$x]")["content"] == "[]"
    assert use(bash)["is_error"] is True
    assert use(shell, command="1 + 1", language="node")["content"] == "2"
    assert asyncio.run(bash.acall({"command": "echo async"})) == "async"


def test_langchain(session: Session) -> None:
    framework("langchain_core")
    from langchain_core.messages import ToolCall
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from sessile.tools.langchain import tool

    shell = tool(session)
    shell.invoke({"command": "cd /usr"})
    assert shell.invoke({"command": "pwd"}) == "/usr"
    call = ToolCall(name="shell", args={"command": "1+1", "language": "python"}, id="c", type="tool_call")
    assert shell.invoke(call).content == "2"
    assert asyncio.run(shell.ainvoke({"command": "echo async"})) == "async"
    assert convert_to_openai_tool(shell)["function"]["parameters"]["required"] == ["command"]


def test_pydantic_ai(session: Session) -> None:
    framework("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from sessile.tools.pydantic_ai import tool

    def words(messages: List[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
        if not returned:
            return ModelResponse([ToolCallPart("shell", {"command": "echo $((40+2))"})])
        return ModelResponse([TextPart(f"it said {returned[0].content}")])

    agent = Agent(FunctionModel(words), tools=[tool(session)])
    assert agent.run_sync("go").output == "it said 42"


def own_python() -> Dict[str, str]:
    """The environment of a session whose Python is the one of the tests."""
    return {"PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])}


def test_smolagents_executor() -> None:
    framework("smolagents")
    # It has what smolagents wants of a session, and no way to install anything.
    with Session(env={**own_python(), "PIP_NO_INDEX": "1"}) as session:
        an_agent_goes_on_after_an_error(session)


def an_agent_goes_on_after_an_error(session: Session) -> None:
    from smolagents import CodeAgent, Model, tool
    from smolagents.models import ChatMessage, MessageRole

    from sessile.tools.smolagents import executor

    @tool
    def double(number: int) -> int:
        """Twice a number.

        Args:
            number: the number.
        """
        return number * 2

    class Scripted(Model):  # type: ignore[misc]
        steps = ["x = double(n)\nprint('step', x)", "1/0", "final_answer([x, 'done'])"]

        def generate(self, *args: Any, **rest: Any) -> ChatMessage:
            content = f"Thought: go\n<code>\n{self.steps.pop(0)}\n</code>"
            return ChatMessage(role=MessageRole.ASSISTANT, content=content)

    agent = CodeAgent([double], Scripted(), executor=executor(session), verbosity_level=0)
    assert agent.run("go", additional_args={"n": 21}) == [42, "done"]
    observations = str(agent.memory.steps[1].observations)
    assert "step 42" in observations
    assert "ZeroDivisionError" in str(agent.memory.steps[2].error)
    assert session.eval("x").result == "42"


def test_smolagents_installs_what_is_missing(tmp_path: Path) -> None:
    framework("smolagents")
    from smolagents.utils import AgentError

    from sessile.tools.smolagents import executor

    with zipfile.ZipFile(tmp_path / "made_up-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("made_up.py", "value = 42")
        wheel.writestr("made_up-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
        wheel.writestr("made_up-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("made_up-1.0.dist-info/RECORD", "")
    target = str(tmp_path / "installed")
    places = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_TARGET": target, "PYTHONPATH": target}
    with Session(env={**own_python(), **places}) as session:
        # pip would fail for `json`.
        executor(session, ["made-up", "json"])
        assert session.python("import made_up; made_up.value").result == "42"
        assert executor(session).missing(["made-up", "made_up", "pillow", "nowhere"]) == ["nowhere"]
        with pytest.raises(AgentError, match="pip could not install nowhere"):
            executor(session, ["nowhere"])


def test_a_tool_takes_a_session_of_either_kind() -> None:
    from sessile.tools.shell import ShellTool

    async def program() -> str:
        async with AsyncSession() as session:
            tool = ShellTool(session)
            await tool.acall({"command": "x=1"})
            return await asyncio.to_thread(tool.call, {"command": "echo $x"})

    assert asyncio.run(program()) == "1"


def test_the_notebook_magic(capsys: pytest.CaptureFixture[str]) -> None:
    framework("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sessile")
    shell.run_cell("%%sessile\ncd /usr\nx=7")
    shell.run_cell("%sessile pwd; echo $x")
    assert capsys.readouterr().out == "/usr\n7\n"
    code = "class Bold:\n  def _repr_html_(self): return '<b>hi</b>'\nBold()"
    value = shell.run_cell(f"%%sessile python\n{code}").result
    assert shell.display_formatter.format(value)[0]["text/html"] == "<b>hi</b>"
    shell.run_cell("%%sessile --session named\nx=1")
    with pytest.raises(Exception, match="does not know 'perl'"):
        shell.run_cell("%%sessile perl\n1").raise_error()
    names = SimpleNamespace(**{"named": Session.attach("named")})
    shell.run_line_magic("unload_ext", "sessile")
    assert names.named.exec("echo $x").stdout == "1\n"
    names.named._is_owner = True
    names.named.close()
    InteractiveShell.clear_instance()
