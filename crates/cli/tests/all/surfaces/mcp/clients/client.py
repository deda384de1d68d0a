"""The official Python client, as an agent's framework uses it."""

import asyncio
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TRANSPORT, MODE = sys.argv[1:3]


def run(command, **more):
    return {"action": "exec", "command": command, **more}


def connect():
    if TRANSPORT == "stdio":
        # The client hands only a few variables on.
        env = {name: value for name, value in os.environ.items() if name.startswith("SESSILE")}
        return StdioServerParameters(command=os.environ["SESSILE"], args=["mcp"], env=env)
    url, token = sys.argv[3:5]
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(url, http_client=http)


async def use():
    async with Client(connect(), mode=MODE) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["runtime"], tools
        assert tools[0].annotations.destructive_hint is True
        await client.call_tool("runtime", run("x=41"))
        answer = await client.call_tool("runtime", run("echo $((x+1))"))
        assert not answer.is_error, answer
        assert answer.content[0].text.endswith("stdout:\n42"), answer
        assert answer.structured_content["stdout"] == "42\n", answer
        failed = await client.call_tool("runtime", run("exit 3"))
        assert failed.is_error and failed.structured_content["exitCode"] == 3, failed
        wrong = await client.call_tool("runtime", {"action": "jump"})
        assert wrong.is_error and "Must be one of" in wrong.content[0].text, wrong
        await wait(client)


async def wait(client):
    """Word comes while a command goes on."""
    heard = asyncio.Event()

    async def hear(progress, total, message):
        assert message == "begun", message
        heard.set()

    arguments = run("mkfifo gate; echo begun; cat gate", timeout_ms=0)
    call = asyncio.create_task(client.call_tool("runtime", arguments, progress_callback=hear))
    await asyncio.wait({asyncio.create_task(heard.wait()), call}, return_when="FIRST_COMPLETED")
    with open("gate", "w") as gate:
        gate.write("go\n")
    answer = await call
    assert answer.structured_content["stdout"] == "begun\ngo\n", answer


async def main():
    await use()
    # Another client, which finds what the first one left.
    async with Client(connect(), mode=MODE) as client:
        answer = await client.call_tool("runtime", run("echo $x"))
        assert answer.structured_content["stdout"] == "41\n", answer
        expected = "2026-07-28" if MODE == "auto" else "2025-11-25"
        assert client.protocol_version == expected, client.protocol_version
        print("ok")


asyncio.run(main())
