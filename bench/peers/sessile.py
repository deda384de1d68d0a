"""Sessile, over HTTP, on the socket that its server has for programs of the same user.

Connections stay, one for each session. Where a single session is used at a time they
block; where many are used at once, asyncio serves them.
"""

import asyncio
import base64
import json
import os
import socket
import sys

import driver
from driver import Answer


class Sessile(driver.Peer):
    name = "Sessile"

    def __init__(self, language):
        self.language = language

    async def start(self):
        # The bench says which binary, and where its sessions are.
        program, self.sessions = os.environ["SESSILE"], os.environ["SESSIONS"]
        self.server = await asyncio.create_subprocess_exec(
            program, "serve", "--local", stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self.address = json.loads(await self.server.stdout.readline())["socket"]

    async def open(self):
        kind = Blocking if self.at_once == 1 else Concurrent
        connection = await kind.open(self.address)
        body = {"shell": self.language, "limits": {"output": "200MB"}}
        started = await connection.call("POST", "/v1/sessions", body)
        return connection, f"/v1/sessions/{started['session_id']}"

    async def run(self, session, code, timeout=None):
        connection, path = session
        body = {"command": code}
        if timeout:
            body["timeout"] = timeout
        done = await connection.call("POST", f"{path}/exec", body)
        output = data(done["stdout"], done.get("encoding", {}).get("stdout"))
        answer = Answer(output, done.get("exit_code"), done.get("timed_out", False))
        answer.done = done
        return answer

    async def everything(self, session, code, timeout=None):
        answer = await self.run(session, code, timeout)
        if "truncated" in answer.done:
            # What an answer has no room for is read by cursor.
            answer.output = await self.output(session, answer.done["run"])
        return answer

    async def stream(self, session, code):
        connection, path = session
        begun = await connection.call("POST", f"{path}/exec", {"command": code, "wait": 0})
        output = await self.output(session, begun["run"])
        done = await connection.call("GET", f"{path}/runs/{begun['run']}?wait=30s")
        return Answer(output, done.get("exit_code"))

    async def output(self, session, run):
        """All of stdout, page by page, also while it is being written."""
        connection, path = session
        pages, at = [], 0
        while True:
            where = f"{path}/runs/{run}/output?stream=stdout&from={at}&max={8 << 20}&wait=30s"
            page = await connection.call("GET", where)
            if page["next"] == at and page["phase"] in ("exited", "closed"):
                return b"".join(pages)
            pages.append(data(page["data"], page.get("encoding")))
            at = page["next"]

    async def close(self, session):
        connection, path = session
        await connection.call("DELETE", path)
        connection.close()

    async def stop(self):
        self.server.terminate()
        await self.server.wait()

    def processes(self):
        # Keepers belong to nobody; their sessions say which they are.
        found = [self.server.pid]
        for name in os.listdir(self.sessions):
            try:
                with open(f"{self.sessions}/{name}/metadata.json") as file:
                    keeper = json.load(file).get("keeper_pid")
            except OSError:
                continue
            if keeper:
                with open(f"/proc/{keeper}/stat") as stat:
                    guardian = int(stat.read().rsplit(")")[-1].split()[1])
                found += [guardian, keeper, *driver.descendants(keeper)]
        return found


def data(text, encoding):
    return base64.b64decode(text) if encoding == "base64" else text.encode()


def request(method, path, body):
    content = json.dumps(body) if body is not None else ""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content.encode())}\r\n\r\n{content}"
    ).encode()


class Reading:
    """Puts an HTTP/1.1 answer together from the pieces in which it comes."""

    def __init__(self):
        self.pieces, self.received = [], 0
        # The length of the head, and of all; not known until the head is there.
        self.head = self.whole = None

    def add(self, piece):
        """Takes a piece, and says whether the answer is complete."""
        self.pieces.append(piece)
        self.received += len(piece)
        if self.whole is None:
            start = b"".join(self.pieces)
            end = start.find(b"\r\n\r\n")
            if end < 0:
                return False
            length = start.index(b"content-length: ") + len(b"content-length: ")
            self.head = end + 4
            self.whole = self.head + int(start[length : start.index(b"\r", length)])
        return self.received >= self.whole

    def answer(self):
        data = b"".join(self.pieces)
        answer = json.loads(data[self.head :])
        if not data.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(str(answer))
        return answer


class Blocking:
    @classmethod
    async def open(cls, address):
        self = cls()
        self.socket = socket.socket(socket.AF_UNIX)
        # As our SDK has it. With a timeout Python waits with poll(2); a blocking read would
        # be woken twice, because the system wakes it when the server has read the request.
        self.socket.settimeout(60)
        self.socket.connect(address)
        return self

    async def call(self, method, path, body=None):
        self.socket.sendall(request(method, path, body))
        reading = Reading()
        while not reading.add(self.more()):
            pass
        return reading.answer()

    def more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise ConnectionError("the server closed the connection")
        return piece

    def close(self):
        self.socket.close()


class Concurrent(asyncio.Protocol):
    @classmethod
    async def open(cls, address):
        loop = asyncio.get_running_loop()
        transport, self = await loop.create_unix_connection(cls, address)
        self.loop, self.transport, self.awaited = loop, transport, None
        return self

    async def call(self, method, path, body=None):
        self.reading, self.awaited = Reading(), self.loop.create_future()
        self.transport.write(request(method, path, body))
        await self.awaited
        return self.reading.answer()

    def data_received(self, data):
        if self.reading.add(data):
            self.awaited.set_result(None)

    def connection_lost(self, error):
        if self.awaited and not self.awaited.done():
            self.awaited.set_exception(ConnectionError("the server closed the connection"))

    def close(self):
        self.transport.close()


if __name__ == "__main__":
    driver.main(Sessile(sys.argv[1]))
