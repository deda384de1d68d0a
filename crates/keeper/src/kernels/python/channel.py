"""The control channel: two FIFOs, one JSON object per line.

Invariants: user code may close or overwrite any descriptor, so none is used before
`Held.fd` has checked that it still is the file we opened. Only the main thread sends.
What is sent is valid JSON for strict readers: no lone surrogates, no NaN.
"""
import os
from itertools import cycle
# Some are for parts that load later, when user code may have patched the module.
from posix import O_NONBLOCK, close, dup, dup2, fstat, getcwd, open, read, sysconf, write

try:
    from _json import encode_basestring_ascii as quote, make_scanner
except ImportError:  # an interpreter built without the accelerator
    from json.encoder import py_encode_basestring_ascii as quote
    from json.scanner import py_make_scanner as make_scanner

try:
    from fcntl import F_GETSIG, F_SETSIG, fcntl
except ImportError:
    fcntl = None

# High enough not to collide with what user code opens or sweeps with closerange, low
# enough for the usual limit of 1024 descriptors.
HIGHEST = 1000
OPEN_MAX = os.sysconf_names["SC_OPEN_MAX"]
# Size of the read buffer, held while we wait. Most orders are shorter; longer ones take
# several reads.
CHUNK = 8192
# The largest signal number: marks are signal numbers.
MOST_MARKS = 64
# A channel that fails this often in a row has lost its keeper.
HOPELESS = 50
# The capacity of a pipe.
WHOLE_PIPE = 1 << 16


class _Syntax:
    strict = False
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int
    memo = {}


decode = make_scanner(_Syntax)


def encode(value):
    kind = type(value)
    if kind is str:
        return _encode_text(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is float:
        return repr(value) if value - value == 0 else "null"
    if kind is dict:
        pairs = [_encode_text(str(k)) + ":" + encode(v) for k, v in value.items()]
        return "{" + ",".join(pairs) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([encode(item) for item in value]) + "]"
    raise TypeError("cannot send a " + kind.__name__)


def _encode_text(text):
    quoted = quote(text)
    if "\\ud" in quoted:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        quoted = quote(whole)
    return quoted


def to_high(fd):
    """Moves `fd` to the highest free number, not inherited by children."""
    limit = sysconf(OPEN_MAX)
    target = HIGHEST if limit < 0 or limit > HIGHEST else limit - 1
    while target > fd and _is_open(target):
        target -= 1
    if target <= fd:
        return fd
    dup2(fd, target, False)
    close(fd)
    return target


def _is_open(fd):
    try:
        fstat(fd)
    except OSError:
        return False
    return True


marks = cycle(range(1, MOST_MARKS + 1))


class Held:
    """One of our descriptors, which is opened again if user code took it away.

    `last_fd` is the unchecked number, for uses where a mistake is harmless.

    A mark identifies what we have opened: the signal for I/O events, which nobody has
    enabled. Other files have none, and reading the mark takes a quarter of the time of
    `fstat`, which matters twice in each run.
    """

    __slots__ = ("last_fd", "_path", "_flags", "_mark", "_inode", "_device")

    def __init__(self, path, flags):
        self._path = path
        self._flags = flags | os.O_CLOEXEC
        self._mark = next(marks)
        self._reopen()

    def fd(self):
        try:
            if self._is_ours():
                return self.last_fd
        except OSError:
            pass
        return self._reopen()

    def stay_below(self, limit):
        """Takes a number below the limit that user code has set, if one is free. At a
        number beyond, the keeper can put nothing in its place."""
        if self.last_fd >= limit:
            try:
                lower = to_high(dup(self.fd()))
                close(self.last_fd)
                self.last_fd = lower
            except OSError:
                pass

    def _reopen(self):
        self.last_fd = to_high(open(self._path, self._flags))
        if fcntl is not None:
            fcntl(self.last_fd, F_SETSIG, self._mark)
        else:
            found = fstat(self.last_fd)
            self._inode, self._device = found.st_ino, found.st_dev
        return self.last_fd

    if fcntl is not None:
        def _is_ours(self):
            return fcntl(self.last_fd, F_GETSIG) == self._mark
    else:
        def _is_ours(self):
            found = fstat(self.last_fd)
            return found.st_ino == self._inode and found.st_dev == self._device


class Reserve:
    """A descriptor reserved for when user code has taken all others: then our parts and
    the sources for an error's traceback can still be read.

    User code may run while it is free and take that one too; then it is reserved again
    when one is free, and until then `run` does without it.
    """

    def __init__(self, null):
        self._held = Held(null, os.O_RDONLY)

    def release(self):
        try:
            if self._held._is_ours():
                close(self._held.last_fd)
        except OSError:
            pass

    def take(self):
        try:
            self._held.fd()
        except OSError:
            pass

    def descriptors(self):
        return [self._held.last_fd]


class Channel:
    """`code`, `stdout` and `stderr` are the files of a run whose order names no others."""

    __slots__ = ("code", "stdout", "stderr", "_ctl", "_rep", "_seal", "_unread")

    def __init__(self, directory):
        self.code, self.stdout, self.stderr = directory + "/c", directory + "/o", directory + "/e"
        self._ctl = Held(directory + "/ctl", os.O_RDONLY)
        self._rep = Held(directory + "/rep", os.O_WRONLY)
        self._seal = Held(directory + "/n", os.O_RDONLY | O_NONBLOCK)
        self._unread = b""

    def descriptors(self):
        return [self._ctl.last_fd, self._rep.last_fd, self._seal.last_fd]

    def secret(self):
        """Returns the proof that a run's report is ours, as JSON. Only called when the
        run is done: until then it is in a pipe, where no frame and no object shows it."""
        for _ in range(HOPELESS):
            try:
                return quote(read(self._seal.fd(), WHOLE_PIPE).decode("latin-1"))
            except BlockingIOError:  # somebody else has read it
                break
            except BaseException:
                continue
        return '""'

    def receive(self, idle):
        """Returns the next message; `idle(fd)` is called before each wait.

        The user's signal handlers may raise in here: then we wait again. None means
        that the keeper is gone.
        """
        failures = 0
        while failures < HOPELESS:
            try:
                if self._unread:
                    line, newline, rest = self._unread.partition(b"\n")
                    if newline:
                        self._unread = rest
                        return decode(line.decode("utf-8", "replace"), 0)[0]
                limit = sysconf(OPEN_MAX)
                if 0 <= limit <= self._ctl.last_fd:
                    for held in self._ctl, self._rep, self._seal:
                        held.stay_below(limit)
                idle(self._ctl.fd)
                data = read(self._ctl.fd(), CHUNK)
                if not data:
                    return None
                self._unread += data
                failures = 0
            except BaseException:
                failures += 1
        return None

    def send(self, text):
        """Writes one whole line. A user's signal handler that raises in here may make
        the line appear twice, but never makes it vanish."""
        line = text.encode("ascii") + b"\n"
        failures = 0
        while line and failures < HOPELESS:
            try:
                line = line[write(self._rep.fd(), line):]
            except BaseException:
                failures += 1
