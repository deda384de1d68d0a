"""Real shells, driven as the keeper drives them, for the tests of the capture scripts.

A `Kernel` is an interactive shell without a terminal that reads trigger lines on
its stdin. Nothing here sleeps or guesses: the end of a run and the end of a
capture are the end of a FIFO, and every wait also watches the process, so that
a shell that died fails the test at once.
"""

import json
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
PATIENCE = 120  # seconds; reached only when something hangs


class Died(Exception):
    """The shell ended while its answer was awaited."""


def usual_signals():
    """A job in the background of a script ignores these, and so would its shells."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def interpreter():
    """The program that makes sense of captures: the keeper's own code. `cargo xtask test` has
    built it already, with the features of the whole workspace."""
    if built := os.environ.get("SESSILE_TEST_INTERPRET"):
        return built
    package = os.path.normpath(os.path.join(HERE, "../../.."))
    build = ["cargo", "build", "--quiet", "--example", "interpret", "--message-format", "json"]
    lines = subprocess.run(build, cwd=package, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    (path,) = [line["executable"] for line in map(json.loads, lines) if line.get("executable")]
    return path


INTERPRETER = interpreter()


class State:
    """A captured state: what is shown of it, and the script that brings it back."""

    KINDS = {
        "env": "env_vars", "var": "variables", "alias": "aliases", "opt": "options", "trap": "traps", "ulimit": "limits",
    }

    def __init__(self, shell, data):
        self.view = json.loads(subprocess.run([INTERPRETER, shell.name], input=data, stdout=subprocess.PIPE, check=True).stdout)
        self.restore = self.view.pop("restore")

    def of(self, kind):
        return self.view.get(self.KINDS[kind], {})

    @property
    def functions(self):
        return set(self.view["functions"])

    @property
    def cwd(self):
        return self.view["working_dir"]

    @property
    def arguments(self):
        return self.view.get("arguments", [])

    def lines(self):
        """What brings it back, whatever the order: hash tables list in any."""
        return sorted(self.restore.splitlines())


class Kernel:
    """One live shell. `shell` is a module-level Shell below."""

    def __init__(self, shell, env=None, cwd=None):
        self.shell = shell
        self.dir = tempfile.mkdtemp(prefix="sessile-")
        self.fifo = os.path.join(self.dir, "done")
        os.mkfifo(self.fifo)
        os.mkfifo(self.path("s"))
        if env is None:
            env = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}
        self.env = env
        self.cwd = cwd or self.dir
        for name in shell.files:
            with open(os.path.join(SCRIPTS, name)) as script, open(self.path("capture"), "w") as f:
                f.write(script.read().replace("@DIR@", self.dir).replace("\\builtin ", shell.prefix))
        shell.prepare(self.dir)
        self.process = subprocess.Popen(
            shell.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=self.cwd,
            start_new_session=True,
            preexec_fn=usual_signals,
        )
        self.pidfd = os.pidfd_open(self.process.pid)

    def path(self, name):
        return os.path.join(self.dir, name)

    def send(self, line):
        assert "\n" not in line, line
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
        said = self.drain(self.path("s"), lambda: self.send(self.shell.idle(self.dir)))
        assert said == b"c 1\n", said
        return State(self.shell, self.take("x1"))

    def take(self, name):
        with open(self.path(name), "rb") as f:
            data = f.read()
        os.unlink(self.path(name))
        return data

    def exit_with(self, text):
        """Runs `text`, which ends the shell; returns its status and what the EXIT trap captured."""
        self.send(self.shell.arm(self.dir))
        self.begin(text)
        status = self.process.wait(PATIENCE)
        return status, State(self.shell, self.take("final"))

    def restore(self, state, more=""):
        with open(self.path("r"), "w") as f:
            f.write(state.restore + more)
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


def capture_costs(shell, text):
    """CPU seconds that a shell takes for `text`, without and with the capture at its exit."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def cost(captures):
        with Kernel(shell) as kernel:
            before = spent()
            if captures:
                kernel.send(shell.arm(kernel.dir))
            kernel.begin(text + "\nexit 0")
            kernel.process.wait(PATIENCE)
            assert not captures or os.path.getsize(kernel.path("final"))
            return spent() - before

    return cost(False), cost(True)


def captures_in_proportion(shell, item, rounds=20):
    """Whether a capture's cost grows with the state, and not with its square.

    With a square in it, eight times the state would take 64 times the time. Without, it is 17 to
    27 times on a machine whose caches the larger state does not fit into. What the
    machine does besides only makes a round slower, so that the least of all rounds counts,
    and there are more rounds as long as that says no.
    """
    texts = ["\n".join(item.format(i) for i in range(count)) for count in (500, 4000)]
    costs = [[], []]
    for _ in range(rounds):
        for text, seen in zip(texts, costs):
            seen.append(capture_costs(shell, text))
        few, many = (min(armed for _, armed in seen) - min(plain for plain, _ in seen) for seen in costs)
        if len(costs[0]) > 2 and many < 40 * max(few, 0) + 0.01:
            return True
    return False


class Shell:
    """The trigger lines of one shell, as the keeper sends them."""

    prefix = "\\builtin "

    def prepare(self, d):
        pass


class Bash(Shell):
    name = "bash"
    argv = ["bash", "--norc", "--noprofile", "--noediting", "+o", "history", "+H", "-i", "-s"]
    files = ["bash/capture.bash"]
    # Another word where the user has a function of that name (see voice.rs).
    prefix = "\\builtin "

    def source(self, d):
        return r"\builtin . %s/c </dev/null >|%s/out 2>&1" % (d, d)

    def signal(self, fifo):
        # A redirection alone: no word that could be a function or an alias.
        return ">|%s" % fifo

    def idle(self, d):
        return (
            r'( \builtin trap -p >|D/x1; ( \builtin . D/capture x1 "$@"; \builtin echo "c 1" >D/s ) & ) '
            r'9<D/capture </dev/null || \builtin echo "c 1" >D/s'
        ).replace("D/", d + "/").replace("\\builtin ", self.prefix)

    def arm(self, d):
        return (
            r"\builtin trap '( \builtin trap -p >|D/final; \builtin . D/capture final " + '"$@"'
            r" ) </dev/null >/dev/null 2>&1 || \: # __sessile_exit' EXIT"
        ).replace("D/", d + "/")

    def restore(self, d):
        return r'\builtin eval "$(<%s/r)" </dev/null >/dev/null 2>&1' % d


class Zsh(Shell):
    name = "zsh"
    argv = ["zsh", "-f", "-i", "-s", "+o", "zle", "+o", "banghist", "+o", "promptsp", "+o", "promptcr"]
    files = ["zsh/capture.zsh"]

    def source(self, d):
        return r"\builtin . %s/c </dev/null >|%s/out 2>&1" % (d, d)

    def signal(self, fifo):
        return r"\builtin : >|%s" % fifo

    # Evaluated, not sourced: after `exit` in a function, zsh leaves a sourced
    # file at its first empty line.
    fork = (
        r'>(\builtin set +o >|D/OUT; \builtin set -- OUT "$@"; '
        r'\builtin emulate -R zsh -o noaliases -c "$(<D/capture)"'
    )

    def idle(self, d):
        line = r"\builtin trap 2>/dev/null > " + self.fork.replace("OUT", "x1") + r'; \builtin echo "c 1" >D/s)'
        return line.replace("D/", d + "/")

    def arm(self, d):
        # Braces make zsh wait for the substitution. A comment would not be kept.
        fork = self.fork.replace("OUT", "final")
        line = r"\builtin trap '\builtin : __sessile_exit; { \builtin trap } 2>/dev/null > " + fork + ")' EXIT"
        return line.replace("D/", d + "/")

    def restore(self, d):
        return r'\builtin eval "$(<%s/r)" </dev/null >/dev/null 2>&1' % d


class Sh(Shell):
    name = "sh"
    argv = ["dash", "-i", "-s"]
    files = ["dash/capture.sh"]

    def prepare(self, d):
        open(os.path.join(d, "names"), "w").close()

    def source(self, d):
        return r"\. %s/c </dev/null >|%s/out 2>&1" % (d, d)

    def signal(self, fifo):
        return ">|%s" % fifo

    def idle(self, d):
        return (
            r'\trap >|D/x1; ( ( \set -- x1 "$@"; \. D/capture; \command echo "c 1" >D/s ) & ) 9<D/capture </dev/null 2>/dev/null'
        ).replace("D/", d + "/")

    def arm(self, d):
        return (
            r"""\trap '{ : __sessile_exit; \trap >|D/final; ( \set -- final "$@"; \. D/capture ) </dev/null >/dev/null; } 2>/dev/null' EXIT"""
        ).replace("D/", d + "/")

    def restore(self, d):
        return r"\. %s/r </dev/null >/dev/null 2>&1" % d
