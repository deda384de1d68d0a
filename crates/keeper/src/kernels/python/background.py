"""What outlives the run that started it: threads, tasks, and the modules they use.

A thread writes to the run that started it, however late, and so does a thread started
by that thread. A `Flow` leads to one run's output; it holds duplicates of the run's
descriptors exactly as long as something refers to it.

Invariants: without threads or tasks there is no Flow and no duplicate. A thread
never writes to 1 or 2 itself: those belong to whichever run is current when the
write happens.
"""
from _contextvars import ContextVar
from _thread import _local

sys = load.sys
channel = load("channel")
streams = load("streams")

here = _local()
task_flow = ContextVar("sessile_flow")


class Flow:
    __slots__ = ("_out", "_err")

    def __init__(self):
        self._out = self._err = None

    def keep(self):
        """Takes duplicates; only valid while the run's own 1 and 2 are in place."""
        if self._out is None:
            self._out = _Duplicate(1)
            self._err = _Duplicate(2)

    def let_go(self):
        self._out = self._err = None

    def fd(self, number):
        kept = self._out if number == 1 else self._err
        if kept is not None and kept.is_ours():
            return kept.fd
        return number


class _Duplicate:
    __slots__ = ("fd", "_identity")

    def __init__(self, number):
        self.fd = channel.to_high(channel.dup(number))
        self._identity = self._look()

    def _look(self):
        found = channel.fstat(self.fd)
        return found.st_dev, found.st_ino

    def is_ours(self):
        try:
            return self._look() == self._identity
        except OSError:
            return False

    def __del__(self):
        if self.is_ours():
            channel.close(self.fd)


def current(kernel):
    """Returns the flow of the calling thread or task; created for a run when first
    needed."""
    flow = getattr(here, "flow", None) or task_flow.get(None)
    if flow is not None:
        return flow
    if kernel.flow is None and kernel.running:
        kernel.flow = Flow()
        _route_by_caller(kernel)
    return kernel.flow


def _route_by_caller(kernel):
    def route(number):
        flow = getattr(here, "flow", None)
        if flow is None:
            flow = task_flow.get(None)
            if flow is None or flow is kernel.flow:
                return number
        return flow.fd(number)

    streams.routes[:] = [route]


def end_run(kernel):
    kernel.flow = None


def adapt_threading(kernel):
    """Makes threads remember the run that started them.

    Replaces the private starter, not Thread.start: subclasses override that, and pools
    and timers bypass it.
    """
    threading = kernel.import_standard("threading")
    name = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
    start = getattr(threading, name)

    def start_thread(function, *args, **options):
        flow = current(kernel)
        if flow is not None:
            flow.keep()
            function = _following(flow, function)
        return start(function, *args, **options)

    setattr(threading, name, start_thread)
    if sys.version_info < (3, 13):
        _show_lines_of_threads(kernel, threading)


def _following(flow, function):
    def bootstrap(*args):
        here.flow = flow
        function(*args)

    return bootstrap


def _show_lines_of_threads(kernel, threading):
    """Before 3.13 the hook is C code that searches for source only on disk."""
    plain = threading.excepthook

    def excepthook(args):
        try:
            if args.exc_type is SystemExit:
                return
            errors = load("errors")
            errors.strip(args.exc_value)
            name = args.thread.name if args.thread is not None else here.__class__.__name__
            traceback = kernel.import_standard("traceback")
            lines = traceback.format_exception(args.exc_type, args.exc_value, args.exc_value.__traceback__)
            sys.stderr.write("Exception in thread %s:\n%s" % (name, "".join(lines)))
        except Exception:
            plain(args)

    threading.excepthook = excepthook


def adapt_inspect(kernel):
    """Lets inspect find the source of classes: it asks their module for a file, and
    typed code has none. Returns false if a thread is still importing it."""
    inspect = kernel.modules["inspect"]
    plain = getattr(inspect, "getfile", None)
    if plain is None:
        return False
    main = kernel.space

    def getfile(thing):
        if isinstance(thing, type) and thing.__module__ == "__main__" and "__file__" not in main:
            name = _run_of_class(kernel, thing)
            if name is not None:
                return name
        return plain(thing)

    getfile.__doc__, getfile.__module__ = plain.__doc__, plain.__module__
    inspect.getfile = getfile
    return True


def _run_of_class(kernel, cls):
    for member in vars(cls).values():
        code = getattr(getattr(member, "__func__", member), "__code__", None)
        name = getattr(code, "co_filename", "")
        if name.startswith("<run ") and getattr(member, "__qualname__", "").startswith(cls.__qualname__ + "."):
            return name
    import re
    pattern = re.compile(r"^\s*class\s+%s\b" % re.escape(cls.__name__), re.M)
    for name, text in kernel.sources.newest_first():
        if pattern.search(text):
            return name
    return None


def flush_c_streams(modules):
    """Flushes what C code has printed and buffered; only if user code has loaded ctypes
    itself."""
    library = getattr(flush_c_streams, "library", None)
    if library is None:
        library = flush_c_streams.library = modules["ctypes"].CDLL(None)
    library.fflush(None)
