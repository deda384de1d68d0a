"""pexpect: its wrapper of bash, in this process."""

import sys

import driver
import pexpect
from driver import Answer
from pexpect import replwrap


class Pexpect(driver.Peer):
    name = f"pexpect {pexpect.__version__}"

    def __init__(self, delay):
        self.delay = delay

    async def open(self):
        shell = replwrap.bash()
        if self.delay == "without-delay":
            # It waits 50 ms before it sends anything, unless told not to.
            shell.child.delaybeforesend = None
        return shell

    async def run(self, session, code, timeout=None):
        try:
            output = await session.run_command(code, timeout=timeout or -1, async_=True)
        except pexpect.TIMEOUT:
            session.child.sendintr()
            await session.child.expect_exact(session.prompt, timeout=5, async_=True)
            return Answer(session.child.before.encode(), timed_out=True)
        except ValueError as error:
            if "Continuation prompt" not in str(error):
                raise
            return Answer(str(error).encode(), refused=True)
        return Answer(output.replace("\r\n", "\n").encode())

    async def status(self, session, code, timeout=None):
        answer = await self.run(session, code, timeout)
        if not answer.timed_out and not answer.refused:
            told = await self.run(session, "echo $?", timeout)
            answer.status = int(told.output) if told.output.strip().isdigit() else None
        return answer

    async def close(self, session):
        session.child.close(force=True)


if __name__ == "__main__":
    driver.main(Pexpect(sys.argv[1] if len(sys.argv) > 1 else "as it comes"))
