"""One run, from message to report.

Invariants:
- Every run is answered exactly once, by the process that was asked: a child that user
  code forked ends where its run ends, and reports nothing.
- Between runs 0, 1 and 2 are /dev/null: no pipe of a finished run stays open here.

Must not: call anything by a name that user code can rebind; import in each run.
"""
import builtins
from _signal import SIGINT, default_int_handler, getsignal, signal
from sys import getprofile, getrecursionlimit, gettrace, setprofile, setrecursionlimit, settrace
from posix import O_CLOEXEC, O_RDONLY, O_WRONLY
from posix import _exit, close, dup2, getpid, open, read, set_inheritable, sysconf

encode = load("channel").encode

NOTHING = "/dev/null"
READ_FLAGS = O_RDONLY | O_CLOEXEC
WRITE_FLAGS = O_WRONLY | O_CLOEXEC
CHUNK = 1 << 16
BYTE_ORDER_MARK = "\ufeff"
# Below this the driver's own work after a run (a traceback, a loop) may not fit.
LEAST_RECURSION = 200
USUAL_RECURSION = 1000
EMFILE = 24  # the same on all of Linux; the module with its name is not loaded yet
NO_ROOM = ("all %d descriptors that this kernel may have are open: close some files, or raise "
           "the limit (resource.setrlimit here, `ulimit -n` where the session is started)")
# As JSON.
SECRET_LENGTH = 10
PLAIN_DONE = '{"op":"done","run":%d,"secret":%s,"exit_code":0,"result":null,"error":null,"notes":[]}'


def answer(kernel, message):
    number = message.get("run", 0)
    kernel.pending = False
    notes = []
    exit_code, result, error = 1, None, None
    try:
        text = message.get("text")
        if text is None:
            text = read_text(message.get("code") or kernel.channel.code)
        if text[:1] == BYTE_ORDER_MARK:
            text = text[1:]
        before = _attach(kernel, message, notes)
        if kernel.mended:
            kernel.mended = False
            notes.append("an earlier run had changed the kernel's own functions; they were put back")
        kernel.running = True
        try:
            exit_code, result, error = _perform(kernel, "<run %d>" % number, text, notes)
        finally:
            _settle(kernel, notes)
            if before:
                _restore_environment(kernel.environ, before)
    except BaseException as problem:
        if getpid() != kernel.pid:
            _exit(1)
        exit_code = exit_code or 1
        error = {"type": "KernelError", "message": "%s: %s" % (type(problem).__name__, problem)}
    finally:
        _detach(kernel.null)
    _send_report(kernel, number, exit_code, result, error, notes)


def _send_report(kernel, number, exit_code, result, error, notes):
    secret = kernel.channel.secret()
    is_usual = len(secret) == SECRET_LENGTH
    kernel.unsure = None if is_usual else (number, exit_code, result, error, notes)
    if exit_code == 0 and result is None and error is None and not notes:
        kernel.channel.send(PLAIN_DONE % (number, secret))
    else:
        rest = encode({"exit_code": exit_code, "result": result, "error": error, "notes": notes})
        kernel.channel.send('{"op":"done","run":%d,"secret":%s,%s' % (number, secret, rest[1:]))


def answer_again(kernel):
    """Reports again: the keeper did not accept the last report, because its secret was
    wrong."""
    if kernel.unsure is not None:
        _send_report(kernel, *kernel.unsure)


def read_text(path):
    fd = _open(path, READ_FLAGS)
    try:
        data = piece = read(fd, CHUNK)
        while len(piece) == CHUNK:
            piece = read(fd, CHUNK)
            data += piece
    finally:
        close(fd)
    return data.decode("utf-8", "surrogateescape")


# What a run finds around it.

def _attach(kernel, message, notes):
    """Returns what `_restore_environment` needs, if anything."""
    stdin = message.get("stdin") or NOTHING
    is_full = _redirect(message.get("stdout") or kernel.channel.stdout, WRITE_FLAGS, 1)
    is_full = _redirect(message.get("stderr") or kernel.channel.stderr, WRITE_FLAGS, 2) or is_full
    # The last one: until then 0 is free to be used for the others.
    if stdin != NOTHING or is_full:
        _redirect(stdin, READ_FLAGS, 0)
    if is_full:
        notes.append(NO_ROOM % sysconf("SC_OPEN_MAX"))
    kernel.streams.renew_input(stdin == NOTHING)
    if kernel.modules.get("__main__") is not kernel.main:
        kernel.modules["__main__"] = kernel.main
    _repair_namespace(kernel.space)
    extra = message.get("env")
    return _extend_environment(kernel.environ, extra) if extra else None


def _redirect(path, flags, target):
    """Redirects a descriptor. Returns whether no spare descriptor was left for it."""
    fd = _open(path, flags)
    if fd == target:
        set_inheritable(fd, True)
        return fd == 0
    dup2(fd, target)
    close(fd)
    return fd == 0


def _open(path, flags):
    """Opens a file. Between runs 0 is unused, and serves if user code has taken all
    others."""
    try:
        return open(path, flags)
    except OSError as problem:
        if problem.errno != EMFILE:
            raise
    close(0)
    return open(path, flags)


def _detach(held):
    null = held.last_fd
    try:
        dup2(null, 1)
        dup2(null, 2)
        dup2(null, 0)
    except OSError:  # closed by user code
        null = held.fd()
        for number in (0, 1, 2):
            dup2(null, number)


def _repair_namespace(space):
    if "__name__" not in space:
        space["__name__"] = "__main__"
    if "__builtins__" not in space:
        space["__builtins__"] = builtins
    if "__import__" not in builtins.__dict__:
        builtins.__dict__.update(load.builtins)


def _extend_environment(environ, extra):
    """Sets variables. Returns the values before, to restore after the run."""
    before = []
    for key, value in extra.items():
        before.append((key, value, environ.get(key)))
        environ[key] = value
    return before


def _restore_environment(environ, before):
    for key, ours, old in before:
        if environ.get(key) != ours:
            continue  # assigned by user code: that is meant to stay
        if old is None:
            del environ[key]
        else:
            environ[key] = old


# From text to result.

def _perform(kernel, name, text, notes):
    program, problem = _prepare(kernel, name, text, notes)
    result = None
    if program is not None:
        result, problem = _execute(kernel, program, notes)
    if getpid() != kernel.pid:
        _vanish(kernel, problem)
    if kernel.imports is not None:
        kernel.imports.confirm(problem is None)
    if kernel.matplotlib_hint:
        kernel.matplotlib_hint = False
        load("display").withdraw_backend(kernel.environ)
    if "matplotlib.pyplot" in kernel.modules:
        result = _add_figures(kernel, result, notes)
    if program is not None and (program.defines or problem is not None):
        kernel.sources.keep(name, text)
    else:
        kernel.sources.drop(name)
    if problem is None:
        return 0, result, None
    exit_code, error = _report(kernel, problem)
    return exit_code, result, error


def _prepare(kernel, name, text, notes):
    kernel.sources.open(name, text)
    try:
        program = _compile(kernel, name, text, notes)
    except BaseException as problem:
        return None, problem
    if "import" in text:
        _foresee(kernel, name, text, program)
    if not kernel.inspect_seen and "inspect" in kernel.modules:
        kernel.inspect_seen = load("background").adapt_inspect(kernel)
    return program, None


def _compile(kernel, name, text, notes):
    try:
        return kernel.compiler.compile(text, name)
    except SyntaxError as problem:
        refused = problem
    # Outside of the handler: what a notebook line raises must not be chained to this.
    program = load("habits").compile(kernel, text, name, refused, notes)
    if program is None:
        raise refused.with_traceback(None)
    return program


def _foresee(kernel, name, text, program):
    """Prepares modules that print source lines or start threads as soon as they are
    imported: they have to know of us before user code uses them."""
    if kernel.imports is None:
        expect_imports(kernel)
        kernel.sources.publish(name, text)
    if "inspect" in text and not kernel.inspect_seen:
        kernel.import_standard("inspect")
    if ("plot" in text or "seaborn" in text) and "matplotlib" not in kernel.modules:
        kernel.matplotlib_hint = load("display").hint_backend(kernel.environ)
    if program.tree is not None:
        kernel.imports.foresee(program.tree)


def expect_imports(kernel):
    if kernel.imports is None:
        kernel.imports = load("imports").Imports(kernel)
        load("background").adapt_threading(kernel)
        kernel.sources.attach(kernel.import_standard("linecache"))


def _execute(kernel, program, notes):
    value = result = problem = None
    space = kernel.space
    if kernel.user_handler is not None:
        signal(SIGINT, kernel.user_handler)
    kernel.active = True
    try:
        if kernel.pending:
            raise KeyboardInterrupt
        if program.is_async:
            value = load("aio").run(kernel, program)
        else:
            # Right here, so that the user's tracer sees no frame of ours.
            if kernel.tracer is not None:
                settrace(kernel.tracer)
            if kernel.profiler is not None:
                setprofile(kernel.profiler)
            if program.body is not None:
                exec(program.body, space)
            if program.last is not None:
                value = eval(program.last, space)
    except BaseException as caught:
        problem = caught
    kernel.tracer = gettrace()
    if kernel.tracer is not None:
        settrace(None)
    kernel.profiler = getprofile()
    if kernel.profiler is not None:
        setprofile(None)
    if value is not None and getpid() == kernel.pid:
        result, problem = _render(value, notes)
    kernel.active = False
    _reclaim_handler(kernel)
    return result, problem


def _render(value, notes):
    try:
        builtins.__dict__["_"] = value
        return load("display").render(value, notes), None
    except BaseException as problem:
        return None, problem


def _reclaim_handler(kernel):
    """Restores our handler: the user's may raise, so it must not be in place in our
    frames."""
    while True:
        try:
            handler = getsignal(SIGINT)
            if handler is not kernel.on_sigint:
                signal(SIGINT, kernel.on_sigint)
                is_default = handler is default_int_handler
                kernel.user_handler = handler if callable(handler) and not is_default else None
            elif kernel.user_handler is not None:
                kernel.user_handler = None
            break
        except BaseException:
            continue


# After it.

def _add_figures(kernel, result, notes):
    kernel.active = True
    try:
        result = load("display").add_figures(kernel.modules, result, notes)
    except BaseException as problem:
        notes.append("figures could not be drawn: %s" % type(problem).__name__)
    kernel.active = False
    return result


def _report(kernel, problem):
    """Returns the exit code and `error`; the traceback goes to the run's stderr."""
    errors = load("errors")
    kernel.reserve.release()
    kernel.active = True
    try:
        answer = errors.report(kernel, problem)
    except BaseException as second:
        kernel.active = False
        answer = errors.last_resort(problem, second)
    kernel.active = False
    kernel.reserve.take()
    return answer


def _vanish(kernel, problem):
    """Ends a child that user code forked, as the interpreter would."""
    exit_code = 0
    try:
        if problem is not None:
            exit_code = _report(kernel, problem)[0]
        kernel.streams.settle([])
    finally:
        _exit(exit_code)


def _settle(kernel, notes):
    kernel.active = True
    try:
        kernel.streams.settle(notes)
        if "ctypes" in kernel.modules:
            load("background").flush_c_streams(kernel.modules)
    except BaseException:
        kernel.active = False
        kernel.streams.install()
    kernel.active = kernel.running = False
    if kernel.flow is not None:
        load("background").end_run(kernel)
    if getrecursionlimit() < LEAST_RECURSION:
        setrecursionlimit(USUAL_RECURSION)
        notes.append("the recursion limit was set back to %d" % USUAL_RECURSION)
