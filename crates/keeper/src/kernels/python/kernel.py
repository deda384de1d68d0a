"""The kernel's loop, and one run from message to report.

Invariants:
- Every run is answered exactly once, by the process that was asked: a child that
  user code forked ends where its run ends and says nothing.
- No interrupt is ever raised in a frame of the driver itself. SIGINT strikes only
  while `active` is set and the frame on top is the user's (or works for the user);
  at any other moment it is noted, and honoured if user code is yet to start.
- Between runs 0, 1 and 2 are /dev/null: no pipe of a finished run stays open here.

Must not: call anything by a name that user code can rebind; import per run.
"""
import builtins
import os
import sys
from _signal import SIGINT, default_int_handler, getsignal, signal
from sys import getprofile, gettrace, setprofile, settrace
from posix import _exit, close, dup2, getpid, open, read

channel = load("channel")
source = load("source")
streams = load("streams")

READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC
WRITE_FLAGS = os.O_WRONLY | os.O_CLOEXEC
CHUNK = 1 << 16
# Below this the driver's own work after a run (a traceback, a loop) may not fit.
LEAST_RECURSION = 200
USUAL_RECURSION = 1000
PLAIN_DONE = '{"op":"done","run":%d,"exit_code":0,"result":null,"error":null,"notes":[]}'


def serve(directory, main, path):
    kernel = Kernel(directory, main, path)
    kernel.send({"op": "ready", "version": sys.version.split()[0], "executable": sys.executable})
    kernel.loop()


class Kernel:
    def __init__(self, directory, main, path):
        self.pid = getpid()
        self.main = main
        self.space = main.__dict__
        self.modules = sys.modules
        self.environ = os.environ
        self.plain_hook = sys.excepthook
        self.sources = source.Sources()
        self.compiler = source.Compiler()
        self.streams = streams.Streams()
        self.active = False
        self.pending = False
        self.cancel = None  # set by `aio` while a loop runs in the foreground
        self.flow = None  # set by `background`: where this run's followers write
        self.imports = None
        self.running = False  # between a message and its answer: 1 and 2 are a run's
        self._path = path
        self._channel = channel.Channel(directory)
        self._null = channel.Held(os.devnull, os.O_RDWR)
        self._user_handler = None
        self._tracer = self._profiler = None
        self._inspect_seen = False
        self._matplotlib_hint = False
        self.on_sigint = self._make_handler()
        signal(SIGINT, self.on_sigint)

    def _make_handler(self):
        is_shielded = load.is_shielded

        def interrupt(signum, frame):
            if self.active:
                if self.cancel is not None and self.cancel(frame):
                    return
                if not is_shielded(frame):
                    raise KeyboardInterrupt
            self.pending = True

        return interrupt

    def send(self, message):
        self._channel.send(channel.encode(message))

    def loop(self):
        while True:
            message = self._channel.receive(self._idle)
            if message is None:
                return
            operation = message.get("op") if type(message) is dict else None
            if operation == "run":
                self._answer_run(message)
            elif operation == "state":
                self._answer_state()
            elif operation == "exit":
                return

    def _idle(self, ctl):
        """Lets asyncio tasks go on while nothing is asked of us."""
        if "asyncio.events" in self.modules:
            load("aio").idle(self, ctl)
            if getpid() != self.pid:
                _exit(0)

    def _answer_state(self):
        try:
            text = channel.encode(load("state").report(self))
        except BaseException as problem:
            text = channel.encode({"op": "state", "error": repr(problem)})
        self._channel.send(text)

    # One run.

    def _answer_run(self, message):
        number = message.get("run", 0)
        self.pending = False
        notes = []
        exit_code, result, error = 1, None, None
        try:
            text = message.get("text")
            if text is None:
                text = read_text(message["code"])
            restore = self._attach(message)
            self.running = True
            try:
                exit_code, result, error = self._perform("<run %d>" % number, text, notes)
            finally:
                self._settle(notes)
                if restore:
                    self._restore_environment(restore)
        except BaseException as problem:
            if getpid() != self.pid:
                _exit(1)
            exit_code = exit_code or 1
            error = {"type": "KernelError", "message": "%s: %s" % (type(problem).__name__, problem)}
        finally:
            self._detach()
        if exit_code == 0 and result is None and error is None and not notes:
            self._channel.send(PLAIN_DONE % number)
        else:
            self.send({"op": "done", "run": number, "exit_code": exit_code,
                       "result": result, "error": error, "notes": notes})

    def _attach(self, message):
        is_empty = message["stdin"] == os.devnull
        if not is_empty:
            _redirect(message["stdin"], READ_FLAGS, 0)
        _redirect(message["stdout"], WRITE_FLAGS, 1)
        _redirect(message["stderr"], WRITE_FLAGS, 2)
        self.streams.renew_input(is_empty)
        self._repair_namespace()
        extra = message.get("env")
        return self._extend_environment(extra) if extra else None

    def _detach(self):
        null = self._null.last_fd
        try:
            dup2(null, 1)
            dup2(null, 2)
            dup2(null, 0)
        except OSError:  # closed by user code
            null = self._null.fd()
            for number in (0, 1, 2):
                dup2(null, number)

    def _repair_namespace(self):
        modules, space = self.modules, self.space
        if modules.get("__main__") is not self.main:
            modules["__main__"] = self.main
        if "__name__" not in space:
            space["__name__"] = "__main__"
        if "__builtins__" not in space:
            space["__builtins__"] = builtins
        if "__import__" not in builtins.__dict__:
            builtins.__dict__.update(load.builtins)

    def _extend_environment(self, extra):
        """Returns what was there before, to put back after the run."""
        before = []
        for key, value in extra.items():
            before.append((key, value, self.environ.get(key)))
            self.environ[key] = value
        return before

    def _restore_environment(self, before):
        for key, ours, old in before:
            if self.environ.get(key) != ours:
                continue  # assigned by user code: that is meant to stay
            if old is None:
                del self.environ[key]
            else:
                self.environ[key] = old

    def _perform(self, name, text, notes):
        program, problem = self._prepare(name, text, notes)
        result = None
        if program is not None:
            result, problem = self._execute(program, notes)
        if getpid() != self.pid:
            self._vanish(problem)
        self._note_effects(program, problem)
        if "matplotlib.pyplot" in self.modules:
            result = self._add_figures(result, notes)
        if program is not None and (program.defines or problem is not None):
            self.sources.keep(name, text)
        else:
            self.sources.drop(name)
        if problem is None:
            return 0, result, None
        exit_code, error = self._report(problem)
        return exit_code, result, error

    def _prepare(self, name, text, notes):
        self.sources.open(name, text)
        try:
            program = self._compile(name, text, notes)
        except BaseException as problem:
            return None, problem
        if "import" in text:
            self._foresee(name, text, program)
        if not self._inspect_seen and "inspect" in self.modules:
            self._inspect_seen = load("background").adapt_inspect(self)
        return program, None

    def _compile(self, name, text, notes):
        try:
            return self.compiler.compile(text, name)
        except SyntaxError as problem:
            refused = problem
        # Outside of the handler: what a notebook line raises must not be chained to this.
        program = load("habits").compile(self, text, name, refused, notes)
        if program is None:
            raise refused.with_traceback(None)
        return program

    def _foresee(self, name, text, program):
        """What imports pull in may print source lines or start threads at once:
        those modules have to know of us before user code meets them."""
        if self.imports is None:
            self.imports = load("imports").Imports(self)
            load("background").adapt_threading(self)
            self.sources.attach(self.import_standard("linecache"))
            self.sources.publish(name, text)
        if "inspect" in text and not self._inspect_seen:
            self.import_standard("inspect")
        if ("plot" in text or "seaborn" in text) and "matplotlib" not in self.modules:
            self._matplotlib_hint = load("display").hint_backend(self.environ)
        if program.tree is not None:
            self.imports.foresee(program.tree)

    def import_standard(self, name):
        """Imports for the driver's own use: not a file of that name in the user's
        directory, and never torn by an interrupt, which waits until it is done."""
        module = self.modules.get(name)
        if module is not None:
            return module
        was_active, self.active = self.active, False
        saved = sys.path
        sys.path = list(self._path)
        try:
            __import__(name)
        finally:
            sys.path = saved
            self.active = was_active
        if was_active and self.pending:
            self.pending = False
            raise KeyboardInterrupt
        return self.modules[name]

    def _execute(self, program, notes):
        value = result = problem = None
        space = self.space
        if self._user_handler is not None:
            signal(SIGINT, self._user_handler)
        self.active = True
        try:
            if self.pending:
                raise KeyboardInterrupt
            if program.is_async:
                value = load("aio").run(self, program)
            else:
                # Right here, so that a tracer of the user's sees no frame of ours.
                if self._tracer is not None:
                    settrace(self._tracer)
                if self._profiler is not None:
                    setprofile(self._profiler)
                if program.body is not None:
                    exec(program.body, space)
                if program.last is not None:
                    value = eval(program.last, space)
        except BaseException as caught:
            problem = caught
        self._tracer = gettrace()
        if self._tracer is not None:
            settrace(None)
        self._profiler = getprofile()
        if self._profiler is not None:
            setprofile(None)
        if value is not None and getpid() == self.pid:
            result, problem = self._render(value, notes)
        self.active = False
        self._reclaim_handler()
        return result, problem

    def _render(self, value, notes):
        try:
            builtins.__dict__["_"] = value
            return load("display").render(value, notes), None
        except BaseException as problem:
            return None, problem

    def _reclaim_handler(self):
        """A handler of the user's may raise, so it must not be in place in our frames."""
        while True:
            try:
                handler = getsignal(SIGINT)
                if handler is not self.on_sigint:
                    signal(SIGINT, self.on_sigint)
                    is_default = handler is default_int_handler
                    self._user_handler = handler if callable(handler) and not is_default else None
                elif self._user_handler is not None:
                    self._user_handler = None
                break
            except BaseException:
                continue

    def _note_effects(self, program, problem):
        if self.imports is not None:
            self.imports.confirm(problem is None)
        if self._matplotlib_hint:
            self._matplotlib_hint = False
            load("display").withdraw_backend(self.environ)

    def _add_figures(self, result, notes):
        self.active = True
        try:
            result = load("display").add_figures(self.modules, result, notes)
        except BaseException as problem:
            notes.append("figures could not be drawn: %s" % type(problem).__name__)
        self.active = False
        return result

    def _report(self, problem):
        """Exit code and `error`; the traceback goes to the run's stderr."""
        errors = load("errors")
        self.active = True
        try:
            answer = errors.report(self, problem)
        except BaseException as second:
            self.active = False
            answer = errors.last_resort(problem, second)
        self.active = False
        return answer

    def _vanish(self, problem):
        """In a child that user code forked: ends it as the interpreter would."""
        exit_code = 0
        try:
            if problem is not None:
                exit_code = self._report(problem)[0]
            self.streams.settle([])
        finally:
            _exit(exit_code)

    def _settle(self, notes):
        self.active = True
        try:
            self.streams.settle(notes)
            if "ctypes" in self.modules:
                load("background").flush_c_streams(self.modules)
        except BaseException:
            self.active = False
            self.streams.install()
        self.active = self.running = False
        if self.flow is not None:
            load("background").end_run(self)
        if sys.getrecursionlimit() < LEAST_RECURSION:
            sys.setrecursionlimit(USUAL_RECURSION)
            notes.append("the recursion limit was set back to %d" % USUAL_RECURSION)


def read_text(path):
    fd = open(path, READ_FLAGS)
    try:
        data = piece = read(fd, CHUNK)
        while len(piece) == CHUNK:
            piece = read(fd, CHUNK)
            data += piece
    finally:
        close(fd)
    text = data.decode("utf-8", "surrogateescape")
    return text[1:] if text[:1] == "\ufeff" else text


def _redirect(path, flags, target):
    fd = open(path, flags)
    if fd == target:
        os.set_inheritable(fd, True)
        return
    dup2(fd, target)
    close(fd)
