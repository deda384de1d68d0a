"""Real shells, driven as the keeper drives them, for the tests of the capture scripts.

A `Kernel` is an interactive shell without a terminal that reads trigger lines on
its stdin. Nothing here sleeps or guesses: the end of a run and the end of a
capture are the end of a FIFO, and every wait also watches the process, so that
a shell that died fails the test at once.
"""

import os
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.normpath(os.path.join(HERE, "../../../src/kernels/shell"))
PATIENCE = 30  # seconds; reached only when something hangs


class Died(Exception):
    """The shell ended while its answer was awaited."""


class Records(list):
    """A captured stream: (kind, name, value) in order, as bytes."""

    @classmethod
    def parse(cls, data):
        fields = data.split(b"\0")
        assert fields[-1] == b"" and len(fields) % 3 == 1, "cut off: %r" % data[-200:]
        records = cls(zip(fields[0:-1:3], fields[1:-1:3], fields[2:-1:3]))
        assert records[-1] == (b"end", b"", b"1"), records[-1]
        return records

    def of(self, kind):
        return {n.decode(): v for k, n, v in self if k == kind.encode()}

    def one(self, kind):
        (value,) = [v for k, _, v in self if k == kind.encode()]
        return value

    def without_order(self):
        """What counts for equality: hash tables list in any order."""
        return sorted(r for r in self if r[0] != b"restore")


class Kernel:
    """One live shell. `shell` is a module-level Shell below."""

    def __init__(self, shell, env=None, cwd=None):
        self.shell = shell
        self.dir = tempfile.mkdtemp(prefix="sessile-")
        self.fifo = os.path.join(self.dir, "done")
        os.mkfifo(self.fifo)
        if env is None:
            env = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}
        self.env = env
        self.cwd = cwd or self.dir
        for name in shell.files:
            with open(os.path.join(SCRIPTS, name)) as script, open(self.path(name.split(".")[0]), "w") as f:
                f.write(script.read().replace("@DIR@", self.dir))
        shell.prepare(self.dir)
        self.process = subprocess.Popen(
            shell.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=self.cwd,
            start_new_session=True,
        )
        self.pidfd = os.pidfd_open(self.process.pid)

    def path(self, name):
        return os.path.join(self.dir, name)

    def send(self, line):
        assert "\n" not in line and len(line.replace(self.dir, "D" * 50)) < 300, len(line)
        os.write(self.process.stdin.fileno(), line.encode() + b"\n")

    def drain(self, fifo, send):
        """All that is written to `fifo` from when `send()` is called until its writers are gone."""
        fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            send()
            chunks, deadline = [], time.monotonic() + PATIENCE
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.register(self.pidfd, select.POLLIN)
            while True:
                ready = dict(poll.poll(max(0, deadline - time.monotonic()) * 1000))
                if not ready:
                    raise TimeoutError(fifo)
                if fd not in ready:
                    # The last bytes may have come just before the death.
                    chunk = self._rest(fd)
                    if chunk:
                        chunks.append(chunk)
                        continue
                    if chunks:
                        return b"".join(chunks)
                    raise Died(self.process.wait())
                chunk = os.read(fd, 1 << 16)
                if not chunk:
                    return b"".join(chunks)
                chunks.append(chunk)
        finally:
            os.close(fd)

    @staticmethod
    def _rest(fd):
        try:
            return os.read(fd, 1 << 16)
        except BlockingIOError:
            return b""

    def run(self, text):
        """Sources `text`; returns what it wrote to stdout, stderr behind it."""
        self.begin(text)
        self.drain(self.fifo, lambda: self.send(self.shell.signal(self.fifo)))
        with open(self.path("out"), "rb") as f:
            return f.read()

    def begin(self, text):
        with open(self.path("c"), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        self.send(self.shell.source(self.dir))

    def capture(self):
        out = self.path("state")
        if not os.path.exists(out):
            os.mkfifo(out)
        return Records.parse(self.drain(out, lambda: self.send(self.shell.idle(self.dir))))

    def exit_with(self, text):
        """Runs `text`, which ends the shell; returns its status and what the EXIT trap captured."""
        os.mkfifo(self.path("state"))
        self.send(self.shell.arm(self.dir))
        data = self.drain(self.path("state"), lambda: self.begin(text))
        return self.process.wait(PATIENCE), Records.parse(data)

    def restore(self, records, more=b""):
        with open(self.path("r"), "wb") as f:
            f.write(records.one("restore") + more)
        self.send(self.shell.restore(self.dir))

    def close(self):
        self.process.stdin.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.pidfd)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def capture_cost(shell, text):
    """CPU seconds that the capture at the exit takes after `text`, over what the shell takes without it."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    with Kernel(shell) as plain:
        before = spent()
        plain.begin(text + "\nexit 0")
        plain.process.wait(PATIENCE)
        base = spent() - before
    with Kernel(shell) as armed:
        before = spent()
        armed.exit_with(text + "\nexit 0")
        return spent() - before - base


class Shell:
    """The trigger lines of one shell, as the keeper sends them."""

    def prepare(self, d):
        pass


class Bash(Shell):
    argv = ["bash", "--norc", "--noprofile", "--noediting", "+o", "history", "+H", "-i", "-s"]
    files = ["capture.bash"]
    carry = "POSIXLY_CORRECT=$?/$-/$BASHOPTS/$SHELLOPTS/${POSIXLY_CORRECT+=$POSIXLY_CORRECT}; \\set +ETx; "

    def source(self, d):
        return r"\builtin . %s/c </dev/null >|%s/out 2>&1" % (d, d)

    def signal(self, fifo):
        # A redirection alone: no word that could be a function or an alias.
        return ">|%s" % fifo

    def idle(self, d):
        return (
            "( " + self.carry + r'( \. D/capture D/state "$(\trap -p)" "$@" ) & '
            r"\exit ${POSIXLY_CORRECT%%/*} ) >/dev/null 2>&1"
        ).replace("D/", d + "/")

    def arm(self, d):
        return (
            r"\builtin trap '( " + self.carry + r'\. D/capture D/state "$(\trap -p)" "$@" '
            r") >/dev/null 2>&1 # __sessile_exit' EXIT"
        ).replace("D/", d + "/")

    def restore(self, d):
        return r'\builtin eval "$(<%s/r)" </dev/null >/dev/null 2>&1' % d


class Zsh(Shell):
    argv = ["zsh", "-f", "-i", "-s", "+o", "zle", "+o", "banghist"]
    files = ["capture.zsh"]

    def source(self, d):
        return r"\builtin . %s/c </dev/null >|%s/out 2>&1" % (d, d)

    def signal(self, fifo):
        return r"\builtin : >|%s" % fifo

    # Evaluated, not sourced: after `exit` in a function, zsh leaves a sourced
    # file at its first empty line.
    fork = (
        r'>(\builtin set -- "$(<D/capture)" "${(@kv)options[@]}" "" D/state "$@"; '
        r'\builtin emulate -R zsh -o noaliases -c "$1")'
    )

    def idle(self, d):
        return (r"\builtin trap 2>/dev/null > " + self.fork).replace("D/", d + "/")

    def arm(self, d):
        # Braces make zsh wait for the substitution. A comment would not be kept.
        return (r"\builtin trap '\builtin : __sessile_exit; { \builtin trap } 2>/dev/null > " + self.fork + "' EXIT").replace("D/", d + "/")

    def restore(self, d):
        return r'\builtin eval "$(<%s/r)" </dev/null >/dev/null 2>&1' % d


class Sh(Shell):
    argv = ["dash", "-i", "-s"]
    files = ["capture.sh"]

    def prepare(self, d):
        # The list of traps passes through here; see capture.sh.
        os.mkfifo(os.path.join(d, "traps"))

    def source(self, d):
        return r"\. %s/c </dev/null >|%s/out 2>&1" % (d, d)

    def signal(self, fifo):
        return ">|%s" % fifo

    def idle(self, d):
        return (
            r"\eval '\trap >&9; \times >&9; ( ( \. D/capture ) <&9 >|D/state 2>/dev/null & \exit '$?' )' 9<>D/traps 2>/dev/null"
        ).replace("D/", d + "/")

    def arm(self, d):
        return (
            r"""\trap '\eval "\trap >&9; \times >&9; ( \. D/capture ) <&9 >|D/state 2>/dev/null" 9<>D/traps; : __sessile_exit' EXIT"""
        ).replace("D/", d + "/")

    def restore(self, d):
        return r"\. %s/r </dev/null >/dev/null 2>&1" % d
