"""SWE-ReX: its server, its remote runtime, and bash sessions in it."""

import asyncio
import importlib.metadata
import itertools
import logging
import os
import socket
import sys

import driver
from driver import Answer
from swerex.exceptions import BashIncorrectSyntaxError, CommandTimeoutError
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    CloseBashSessionRequest,
    CreateBashSessionRequest,
)
from swerex.runtime.remote import RemoteRuntime


class SweRex(driver.Peer):
    name = f"SWE-ReX {importlib.metadata.version('swe-rex')}"

    async def start(self):
        logging.disable(logging.CRITICAL)
        self.names = (f"session{number}" for number in itertools.count())
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        program = os.path.join(os.path.dirname(sys.executable), "swerex-remote")
        self.server = await asyncio.create_subprocess_exec(
            program, "--auth-token", "bench", "--host", "127.0.0.1", "--port", str(port),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            # As in a container. Else bash's line editing adds to every output.
            env={**os.environ, "TERM": "dumb"},
        )  # fmt: skip
        self.runtime = RemoteRuntime(host="http://127.0.0.1", port=port, auth_token="bench")
        await self.runtime.wait_until_alive(timeout=60)

    async def open(self):
        name = next(self.names)
        # The default of a second is not enough when the machine is busy.
        request = CreateBashSessionRequest(session=name, startup_timeout=10)
        await self.runtime.create_session(request)
        return name

    async def run(self, session, code, timeout=None):
        action = BashAction(session=session, command=code, timeout=timeout, check="silent")
        try:
            done = await self.runtime.run_in_session(action)
        except BashIncorrectSyntaxError as error:
            return Answer(str(error).encode(), refused=True)
        except CommandTimeoutError:
            await self.runtime.run_in_session(BashInterruptAction(session=session))
            return Answer(b"", timed_out=True)
        return Answer(done.output.encode("utf-8", "surrogateescape"), done.exit_code)

    def processes(self):
        return driver.descendants(os.getpid())

    async def close(self, session):
        await self.runtime.close_session(CloseBashSessionRequest(session=session))

    async def stop(self):
        self.server.terminate()
        await self.server.wait()


if __name__ == "__main__":
    driver.main(SweRex())
