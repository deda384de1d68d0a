"""Sessile, over HTTP: connections that stay, one for each session."""

import asyncio
import base64
import json
import os
import sys

import driver
from driver import Answer


class Sessile(driver.Peer):
    name = "Sessile"

    def __init__(self, language):
        self.language = language

    async def start(self):
        # The bench says which binary, and where its sessions are.
        program, sessions = os.environ["SESSILE"], os.environ["SESSIONS"]
        self.sessions = sessions
        self.server = await asyncio.create_subprocess_exec(
            program, "--sessions-dir", sessions, "serve", "--listen", "127.0.0.1:0",
            "--auth", "none", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            cwd=os.path.dirname(sessions),
        )  # fmt: skip
        line = (await self.server.stdout.readline()).decode()
        address = line.split("://")[1].split()[0].rstrip("/")
        self.host, self.port = address.split(":")

    async def open(self):
        connection = await Connection.open(self.host, self.port)
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
        connection.writer.close()

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


class Connection:
    """HTTP/1.1, as much as it takes."""

    @classmethod
    async def open(cls, host, port):
        self = cls()
        self.host = f"{host}:{port}"
        self.reader, self.writer = await asyncio.open_connection(host, port, limit=1 << 25)
        return self

    async def call(self, method, path, body=None):
        content = json.dumps(body) if body is not None else ""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content.encode())}\r\n\r\n"
        )
        self.writer.write(f"{head}{content}".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length))
        if not head.startswith("http/1.1 2"):
            raise RuntimeError(str(answer))
        return answer


if __name__ == "__main__":
    driver.main(Sessile(sys.argv[1]))
