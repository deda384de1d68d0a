"""ipykernel: kernels that this process starts and talks to with jupyter_client."""

import importlib.metadata
import logging

import driver
from driver import Answer
from jupyter_client import AsyncKernelManager


class Ipykernel(driver.Peer):
    name = f"ipykernel {importlib.metadata.version('ipykernel')}"

    async def start(self):
        logging.disable(logging.CRITICAL)

    async def open(self):
        manager = AsyncKernelManager(kernel_name="python3")
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        return manager, client

    async def run(self, session, code, timeout=None):
        manager, client = session
        output = []

        def listen(message):
            content = message["content"]
            if message["header"]["msg_type"] == "stream" and content["name"] == "stdout":
                output.append(content["text"])

        async def execute(code, timeout):
            return await client.execute_interactive(
                code, output_hook=listen, timeout=timeout, allow_stdin=False
            )

        try:
            reply = await execute(code, timeout)
        except TimeoutError:
            await manager.interrupt_kernel()
            await execute("", 5)
            return Answer("".join(output).encode(), timed_out=True)
        return Answer("".join(output).encode(), status(reply["content"]))

    async def close(self, session):
        manager, client = session
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


def status(content):
    """What a plain Python would have exited with."""
    if content["status"] == "ok":
        return 0
    if content.get("ename") == "SystemExit" and content["evalue"].isdigit():
        return int(content["evalue"])
    return 1


if __name__ == "__main__":
    driver.main(Ipykernel())
