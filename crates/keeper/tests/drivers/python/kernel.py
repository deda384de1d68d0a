"""Plays the keeper for the Python driver: FIFOs, messages, signals.

Every wait is for an event (a report, output, the end of a process) with a
deadline that only a broken driver reaches. SESSILE_TEST_PYTHON names the
interpreter under test; the one that runs the tests is the default.
"""
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PYTHON = os.environ.get("SESSILE_TEST_PYTHON", sys.executable)
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../src/kernels/python")
DEADLINE = 60
VERSION = tuple(map(int, subprocess.check_output(
    [PYTHON, "-c", "import sys; print('%d %d' % sys.version_info[:2])"]).split()))


class Gone(Exception):
    """The kernel's process ended; `args[0]` is its status."""


class Run:
    """One run: what it has printed so far, and its report once there is one."""

    def __init__(self, kernel, number, fds):
        self.kernel, self.number, self.fds = kernel, number, fds
        self.bytes = {name: bytearray() for name in fds}
        self.is_closed = {name: False for name in fds}
        self.report = None

    @property
    def out(self):
        return self.bytes["stdout"].decode("utf-8", "surrogateescape")

    @property
    def err(self):
        return self.bytes["stderr"].decode("utf-8", "surrogateescape")

    @property
    def code(self):
        return self.report["exit_code"]

    @property
    def text(self):
        return self.report["result"] and self.report["result"]["text"]

    @property
    def data(self):
        return self.report["result"]["data"]

    @property
    def error(self):
        return self.report["error"]

    @property
    def notes(self):
        return self.report["notes"]

    def wait(self):
        """Until the driver has reported; what it wrote before is read as well."""
        self.kernel.pump(lambda: self.report is not None)
        self.drain()
        return self

    def wait_for(self, text, stream="stdout"):
        self.kernel.pump(lambda: text.encode() in self.bytes[stream])
        return self

    def wait_closed(self):
        """Until nobody holds the run's output any more."""
        self.kernel.pump(lambda: all(self.is_closed.values()))
        return self

    def interrupt(self):
        os.kill(self.kernel.process.pid, signal.SIGINT)
        return self

    def drain(self):
        for name, fd in self.fds.items():
            while not self.is_closed[name] and self._read(name, fd):
                pass

    def _read(self, name, fd):
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self.is_closed[name] = True
        self.bytes[name] += data
        return bool(data)


class Kernel:
    def __init__(self, python=PYTHON, cwd=None, env=None):
        self.directory = tempfile.mkdtemp(prefix="k")
        self.home = tempfile.mkdtemp(prefix="w") if cwd is None else cwd
        for name in os.listdir(DRIVER):
            if name.endswith(".py"):
                shutil.copy(os.path.join(DRIVER, name), self.directory)
        for name in ("ctl", "rep", "n"):
            os.mkfifo(os.path.join(self.directory, name), 0o600)
        self.ctl = os.open(self.directory + "/ctl", os.O_RDWR)
        self.rep = os.open(self.directory + "/rep", os.O_RDWR | os.O_NONBLOCK)
        self.seal = os.open(self.directory + "/n", os.O_RDWR | os.O_NONBLOCK)
        environment = dict(os.environ, **(env or {}))
        self.process = subprocess.Popen(
            [python, "-u", self.directory + "/driver.py", self.directory],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self.home, env=environment, start_new_session=True)
        self.runs = {}
        self.messages = []
        self._unread = b""
        self._count = 0
        self.pump(lambda: self.messages)
        self.ready = self.messages.pop(0)

    def send(self, message):
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(self.ctl, data):]

    def start(self, code, stdin=None, env=None, inline=False):
        self._count += 1
        number = self._count
        base = "%s/%d." % (self.directory, number)
        with open(base + "code", "wb") as file:
            file.write(code if isinstance(code, bytes) else code.encode("utf-8", "surrogatepass"))
        if isinstance(stdin, str):
            with open(base + "in", "w") as file:
                file.write(stdin)
            stdin = base + "in"
        elif stdin is Fifo:
            os.mkfifo(base + "in")
            stdin = base + "in"
        fds = {}
        for name in ("stdout", "stderr"):
            os.mkfifo(base + name)
            fds[name] = os.open(base + name, os.O_RDONLY | os.O_NONBLOCK)
        run = self.runs[number] = Run(self, number, fds)
        # Held until the driver has opened its own end: only then does end of file
        # mean that everybody has let go.
        run.held = [os.open(base + name, os.O_WRONLY) for name in fds]
        message = {"op": "run", "run": number, "code": base + "code", "stdin": stdin or os.devnull,
                   "stdout": base + "stdout", "stderr": base + "stderr"}
        if stdin and stdin.endswith("in"):
            run.stdin = stdin
        if env:
            message["env"] = env
        if inline:
            del message["code"]
            message["text"] = code
        os.write(self.seal, secret(number))
        self.send(message)
        return run

    def run(self, code, **options):
        return self.start(code, **options).wait()

    def state(self):
        self.send({"op": "state"})
        self.pump(lambda: any(m["op"] == "state" for m in self.messages))
        return self._take("state")

    def dump(self):
        """Has a dump written; its path and what the keeper would read of it."""
        self._dumps = getattr(self, "_dumps", 0) + 1
        path = "%s/dump%d" % (self.directory, self._dumps)
        self.send({"op": "dump", "path": path})
        self.pump(lambda: any(m["op"] == "dumping" for m in self.messages))
        writer = self._take("dumping")["pid"]
        wait_for_end(writer)
        with open(path + ".report", "rb") as file:
            return path, json.load(file)

    def load(self, path, **options):
        self.send(dict(options, op="load", path=path))
        self.pump(lambda: any(m["op"] == "loaded" for m in self.messages))
        return self._take("loaded")

    def variable(self, name):
        return {v["name"]: v for v in self.state()["variables"]}[name]

    def exit(self):
        self.send({"op": "exit"})
        return self.process.wait(DEADLINE)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def pump(self, is_done):
        """Reads whatever comes until `is_done()`."""
        end = time.monotonic() + DEADLINE
        while not is_done():
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError("deadline; last output: %r" % [
                    (r.number, r.out[-300:], r.err[-300:]) for r in self.runs.values()][-3:])
            if not self._step(left) and self.process.poll() is not None and not self._step(0):
                if is_done():
                    return
                raise Gone(self.process.returncode)

    def _step(self, timeout):
        poll = select.poll()
        poll.register(self.rep, select.POLLIN)
        sources = {}
        for run in self.runs.values():
            for name, fd in run.fds.items():
                if not run.is_closed[name]:
                    poll.register(fd, select.POLLIN)
                    sources[fd] = (run, name)
        events = poll.poll(min(timeout, 0.2) * 1000)
        for fd, _ in events:
            if fd == self.rep:
                self._read_reports()
            else:
                run, name = sources[fd]
                run._read(name, fd)
        return bool(events)

    def _read_reports(self):
        self._unread += os.read(self.rep, 1 << 16)
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            message = json.loads(line.decode("ascii"))
            if message["op"] == "done":
                run = self.runs[message["run"]]
                assert run.report is None, "reported twice"
                told = message["secret"].encode("latin-1")
                if secret(message["run"]) not in told:
                    self.messages.append(dict(message, op="unproven"))
                    continue
                run.report = message
                for fd in run.held:
                    os.close(fd)
                run.held = []
            else:
                self.messages.append(message)

    def _take(self, operation):
        for index, message in enumerate(self.messages):
            if message["op"] == operation:
                return self.messages.pop(index)
        raise AssertionError("no " + operation)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for run in self.runs.values():
            for fd in list(run.fds.values()) + run.held:
                os.close(fd)
        os.close(self.ctl)
        os.close(self.rep)
        os.close(self.seal)
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)


def secret(number):
    """What the report of a run has to have in it."""
    return b"secret%02d" % number if number < 100 else b"s%07d" % number


def wait_for_end(pid):
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([watch], [], [], DEADLINE)[0], "it does not end"
    finally:
        os.close(watch)


class Fifo:
    """Given as `stdin`: the test writes to `run.stdin` while the run goes on."""
