"""sys.stdin, sys.stdout and sys.stderr of user code.

Invariants: every write reaches the descriptor before it returns, so print() and
the output of child processes keep their order; printing never raises because of
what is printed; the objects live as long as the kernel (loggers keep them), so
closing one only flushes it.
"""
import sys
from codecs import backslashreplace_errors, lookup_error, register_error
from io import FileIO, BufferedReader, RawIOBase, TextIOWrapper
from posix import isatty, write

ESCAPE = "escape"
surrogateescape_errors = lookup_error("surrogateescape")


def _escape_errors(problem):
    """Writes bytes that were undecodable on input as they were, and escapes the rest."""
    try:
        return surrogateescape_errors(problem)
    except UnicodeError:
        return backslashreplace_errors(problem)


register_error(ESCAPE, _escape_errors)


# Set by `background` once something writes for an earlier run: maps 1 or 2 to the
# descriptor that the caller's output belongs to.
routes = []


class Outlet(RawIOBase):
    def __init__(self, fd, name):
        self._number = fd
        self.name = name
        self.mode = "wb"

    @property
    def raw(self):
        return self

    def fileno(self):
        return self._number

    def writable(self):
        return True

    def isatty(self):
        return isatty(self._number)

    def write(self, data):
        fd = self._number
        if routes:
            fd = routes[0](fd)
        if type(data) is not bytes:
            data = memoryview(data).cast("B")
        size = len(data)
        try:
            done = write(fd, data)
        except BlockingIOError:
            done = 0
        if done != size:
            _write_rest(fd, memoryview(data)[done:])
        return size

    def close(self):
        pass


def _write_rest(fd, data):
    """Writes the rest after a signal, or when a child has made the shared pipe
    non-blocking."""
    import select
    while data:
        try:
            data = data[write(fd, data):]
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()


class Text(TextIOWrapper):
    def close(self):
        try:
            self.flush()
        except ValueError:
            pass


def output(fd, name, errors):
    stream = Text(Outlet(fd, name), "utf-8", errors, "\n", False, True)
    stream.mode = "w"
    return stream


def input():
    raw = FileIO(0, "r", closefd=False)
    raw.name = "<stdin>"
    stream = TextIOWrapper(BufferedReader(raw), "utf-8", "surrogateescape")
    stream.mode = "r"
    return stream


class Streams:
    """Keeps sys.std* usable whatever user code did to them."""

    def __init__(self):
        self._out = output(1, "<stdout>", ESCAPE)
        self._err = output(2, "<stderr>", "backslashreplace")
        self._empty = None
        self.install()
        self.renew_input(True)

    def install(self):
        sys.stdout = sys.__stdout__ = self._out
        sys.stderr = sys.__stderr__ = self._err

    def renew_input(self, is_empty):
        """Sets a fresh sys.stdin; /dev/null leaves no buffer behind, so that one is
        kept."""
        stream = self._empty
        if not is_empty or stream is None or stream.closed:
            stream = input()
            if is_empty:
                self._empty = stream
        sys.stdin = sys.__stdin__ = stream

    def settle(self, notes):
        """Flushes, and restores what user code replaced."""
        if getattr(sys, "stdout", None) is not self._out:
            self._take_back("stdout", notes)
        if getattr(sys, "stderr", None) is not self._err:
            self._take_back("stderr", notes)
        try:
            self._out.flush()
            self._err.flush()
        except OSError:
            pass
        except ValueError:  # detached: the wrapper cannot be used again
            self._out = output(1, "<stdout>", ESCAPE)
            self._err = output(2, "<stderr>", "backslashreplace")
            self.install()

    def _take_back(self, name, notes):
        notes.append("sys.%s was replaced in this run; it is back for the next" % name)
        _flush(getattr(sys, name, None))
        self.install()


def _flush(stream):
    try:
        stream.flush()
    except Exception:
        pass
