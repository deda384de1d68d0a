"""jupyter_server: kernels behind its REST calls and WebSockets."""

import asyncio
import importlib.metadata
import json
import os
import socket
import sys
import tempfile
import uuid

import aiohttp
import driver
from driver import Answer
from ipykernel_client import status

TOKEN = {"Authorization": "token bench"}


class JupyterServer(driver.Peer):
    name = f"jupyter_server {importlib.metadata.version('jupyter_server')}"

    async def start(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.place = tempfile.TemporaryDirectory()
        self.server = await asyncio.create_subprocess_exec(
            os.path.join(os.path.dirname(sys.executable), "jupyter-server"), "--allow-root",
            "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}", "--no-browser",
            "--IdentityProvider.token=bench", f"--ServerApp.root_dir={self.place.name}",
            # The default drops output beyond 1 MB a second.
            "--ZMQChannelsWebsocketConnection.limit_rate=False",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self.http = aiohttp.ClientSession(f"http://127.0.0.1:{self.port}", headers=TOKEN)
        while True:
            try:
                await self.call("GET", "/api/status")
                return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)

    async def call(self, method, path):
        async with self.http.request(method, path, json={}) as answer:
            answer.raise_for_status()
            return await answer.read()

    async def open(self):
        kernel = json.loads(await self.call("POST", "/api/kernels"))["id"]
        socket = await self.http.ws_connect(f"/api/kernels/{kernel}/channels", max_msg_size=0)
        return kernel, socket

    async def run(self, session, code, timeout=None):
        kernel, socket = session
        output = []
        try:
            reply = await asyncio.wait_for(execute(socket, code, output), timeout)
        except asyncio.TimeoutError:
            await self.call("POST", f"/api/kernels/{kernel}/interrupt")
            await asyncio.wait_for(execute(socket, "", []), 5)
            return Answer("".join(output).encode(), timed_out=True)
        return Answer("".join(output).encode(), status(reply))

    def processes(self):
        return driver.descendants(os.getpid())

    async def close(self, session):
        kernel, socket = session
        await socket.close()
        await self.call("DELETE", f"/api/kernels/{kernel}")

    async def stop(self):
        await self.http.close()
        self.server.terminate()
        await self.server.wait()
        self.place.cleanup()


async def execute(socket, code, output):
    """One execute_request, until its reply and its idle state have come."""
    message = uuid.uuid4().hex
    header = {"msg_id": message, "msg_type": "execute_request", "username": "", "session": "bench",
              "version": "5.3", "date": ""}  # fmt: skip
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
               "allow_stdin": False, "stop_on_error": True}  # fmt: skip
    await socket.send_json({"header": header, "parent_header": {}, "metadata": {},
                            "content": content, "channel": "shell", "buffers": []})  # fmt: skip
    reply, is_idle = None, False
    while reply is None or not is_idle:
        told = await socket.receive_json()
        if told["parent_header"].get("msg_id") != message:
            continue
        kind = told["msg_type"]
        if kind == "stream" and told["content"]["name"] == "stdout":
            output.append(told["content"]["text"])
        elif kind == "execute_reply":
            reply = told["content"]
        elif kind == "status":
            is_idle = told["content"]["execution_state"] == "idle"
    return reply


if __name__ == "__main__":
    driver.main(JupyterServer())
