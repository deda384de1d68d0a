"""Copies of the running interpreter: forks of the session, and images for rewinds.

A copy is a grandchild: the process in between ends at once, so that the keeper becomes
its parent and user code that waits for its children never meets it. The copy takes
orders in its own directory, and reports there that it is up.

Invariants:
- The original goes on as if nothing had happened, whatever happens to the copy.
- No open file description is shared: what is read or written in one process moves
  nothing in the other. Files are opened again at their position; sockets, pipes and the
  like stay with the original, and the copy finds them closed.
- A fork draws other random numbers than the original; an image keeps those that were to
  come, so that a rewind restores them.
"""
from _signal import ITIMER_REAL, SIG_DFL, SIG_UNBLOCK, SIGALRM, SIGCHLD
from _signal import getsignal, pthread_sigmask, set_wakeup_fd, setitimer, signal
from posix import O_CLOEXEC, O_RDONLY, O_RDWR, P_ALL, WEXITED, WEXITSTATUS, WIFEXITED, WNOHANG
from posix import WNOWAIT, _exit, chdir, close, dup2, fork, fstat, getpid, kill, listdir, lseek, open
from posix import pipe, pread, pwrite, read, readlink, setsid, strerror, urandom, waitid, waitpid, write

sys = load.sys
channel = load("channel")
state = load("state")
sharing = load("sharing")

MARKER = "SESSILE_SESSION_ID"
# Kinds of files, as in `stat`.
KIND, REGULAR, PIPE, SOCKET = 0o170000, 0o100000, 0o010000, 0o140000
UNTOUCHED = (0o020000, 0o060000, 0o040000)  # devices and directories
# Flags that only matter to the call that opens.
OPENING = 0o100 | 0o200 | 0o1000 | 0o400
# Fields of /proc/self/stat after the name: where the environment is in memory.
ENV_START, ENV_END = 47, 48
MOST_NAMED = 20
# Below this the end of a process takes about a millisecond.
HEAVY_PAGES = 1 << 14
# In seconds; a copy is up after some milliseconds.
MOMENT = 0.1


def answer(kernel, message):
    """Returns true in the original. In the copy: false, and `kernel` is the copy's."""
    try:
        plan = _look_at_descriptors(kernel)
        threads = state._threads(kernel.modules)
        restless = bool(threads) or _has_tasks(kernel)
        numbers = _random_numbers(kernel.modules)
        is_original, problem, pid = split(_is_heavy())
    except BaseException as failure:
        is_original, problem, pid = getpid() == kernel.pid, _text_of(failure), None
    if is_original:
        report = {"op": "copied", "directory": message["directory"], "pid": pid}
        if problem is not None:
            report = {"op": "unborn", "directory": message["directory"], "error": problem}
        if problem is not None or pid is not None:
            kernel.channel.send(channel.encode(report))
        return True
    try:
        left = _become(kernel, message, plan, numbers)
        kernel.channel.send(channel.encode({
            "op": "born", "pid": kernel.pid, "restless": restless,
            "version": sys.version.split()[0],
            "threads": threads[:MOST_NAMED], "left": left[:MOST_NAMED]}))
        if load.held >= 0:
            close(load.held)
    except BaseException as failure:
        _give_up(kernel, message, failure)
    return False


def _has_tasks(kernel):
    """Whether the state may change between two runs."""
    if "asyncio.events" not in kernel.modules:
        return False
    aio = load("aio")
    loop = aio.find_loop(kernel, False)
    return loop is not None and aio.has_work(kernel, loop)


def _text_of(failure):
    if isinstance(failure, OSError) and failure.errno is not None:
        return strerror(failure.errno)
    return "%s: %s" % (type(failure).__name__, failure)


def split(holds=False):
    """Returns whether we are the original; why there is no copy if there is none; and
    the copy's pid, by which the keeper notices if it does not get far.

    The copy is no child of this process, and a user's handler for the end of children
    is not called.

    Ending a process with much memory takes longer than forking it, and slows down those
    that share the memory. So the process in between may have to wait with its end until
    the copy closes `load.held`.
    """
    reading, writing = pipe()
    held, holding = pipe() if holds else (-1, -1)
    handler = getsignal(SIGCHLD)
    # If ignored, the end of the process in between could not be detected.
    is_set = handler is not None and handler != SIG_DFL
    if is_set:
        signal(SIGCHLD, SIG_DFL)
    try:
        between = fork()
        if between == 0:
            try:
                child = fork()
            except OSError as failure:
                _exit(failure.errno & 0x7f or 1)
            if child:
                try:
                    write(writing, b"%d" % child)
                    if holds:
                        close(holding)
                        _wait_a_moment(held)
                finally:
                    _exit(0)
            load.held, holding = holding, -1
            return False, None, None
        if holds:
            close(holding)
            holding = -1
        status = waitpid(between, 0)[1]
        close(writing)
        writing = -1
        pid = int(read(reading, 32) or b"0") or None
    finally:
        for fd in (reading, writing, held, holding):
            if fd >= 0:
                close(fd)
        if is_set:
            signal(SIGCHLD, handler)
    if callable(handler) and _has_ended_children():
        # A child may have ended just now, unnoticed.
        kill(getpid(), SIGCHLD)
    code = WEXITSTATUS(status) if WIFEXITED(status) else 1
    return True, strerror(code) if code and pid is None else None, pid


def _is_heavy():
    resident = int(_read_all("/proc/self/statm").split()[1])
    return resident > HEAVY_PAGES


def _wait_a_moment(held):
    """Waits for the other end to be closed; a copy that hangs must not block the
    original."""
    signal(SIGALRM, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, (SIGALRM,))
    setitimer(ITIMER_REAL, MOMENT)
    read(held, 1)


def _has_ended_children():
    try:
        return waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT) is not None
    except OSError:
        return False


def _become(kernel, message, plan, numbers):
    setsid()
    kernel.pid = getpid()
    directory, kind = message["directory"], message["kind"]
    set_wakeup_fd(-1)
    left = _separate(plan) + sharing.separate()
    kernel.channel = channel.Channel(directory)
    kernel.null = channel.Held("/dev/null", O_RDWR)
    kernel.reserve.release()
    kernel.reserve.take()
    _renew_loops(kernel)
    kernel.frozen = kind == "image"
    if kind == "fork":
        load.move(directory)
        _mark(kernel, message["session"])
        _reseed(kernel.modules)
        _forget_endings(kernel.modules)
        _forget_children(kernel.modules)
        kernel.is_fork = True
        kernel.environ.update(message["env"])
        if message["cwd"] is not None:
            _quietly(lambda: chdir(message["cwd"]))
    else:
        _keep_numbers(kernel.modules, numbers)
        if kind == "kernel":
            load.move(directory)
    return left


def _give_up(kernel, message, failure):
    try:
        rep = open(message["directory"] + "/rep", 1 | O_CLOEXEC)
        text = channel.encode({"op": "unborn", "directory": message["directory"],
                               "error": _text_of(failure)})
        channel.write(rep, text.encode("ascii") + b"\n")
    finally:
        _exit(1)


# Descriptors.

def _look_at_descriptors(kernel):
    """Plans what the copy has to do about each: the original may move on at once."""
    ours = kernel.channel.descriptors() + [kernel.null.last_fd] + kernel.reserve.descriptors()
    plan = []
    for name in listdir("/proc/self/fd"):
        fd = int(name)
        try:
            kind = fstat(fd).st_mode & KIND
        except OSError:
            continue
        if fd in ours:
            plan.append((fd, None, 0, 0))
        elif kind == REGULAR:
            plan.append((fd, kind) + _position(fd))
        elif kind not in UNTOUCHED:
            plan.append((fd, kind, _flags(fd), 0))
    return plan


def _details(fd):
    info = open("/proc/self/fdinfo/%d" % fd, O_RDONLY | O_CLOEXEC)
    try:
        lines = read(info, 4096).decode().split("\n")
    finally:
        close(info)
    return {line.partition(":")[0]: line.partition(":")[2].strip() for line in lines}


def _position(fd):
    details = _details(fd)
    return int(details["flags"], 8), int(details["pos"])


def _flags(fd):
    return int(_details(fd)["flags"], 8)


def _separate(plan):
    """Carries out the plan. Returns the names of what stays with the original."""
    left = []
    for fd, kind, flags, position in plan:
        if kind is None:
            close(fd)
        elif kind == REGULAR:
            if not _open_again(fd, flags, position):
                left.append("descriptor %d (%s): it could not be opened again" % (fd, _target(fd)))
                _cut(fd, kind, flags)
        else:
            if kind == SOCKET:
                left.append("descriptor %d: a socket" % fd)
            elif kind == PIPE and fd < channel.HIGHEST - 100:
                left.append("descriptor %d: a pipe" % fd)
            _cut(fd, kind, flags)
    return left


def _target(fd):
    try:
        return readlink("/proc/self/fd/%d" % fd)
    except OSError:
        return "?"


def _open_again(fd, flags, position):
    try:
        fresh = open("/proc/self/fd/%d" % fd, flags & ~OPENING | O_CLOEXEC)
    except OSError:
        return False
    lseek(fresh, position, 0)
    dup2(fresh, fd, not flags & O_CLOEXEC)
    close(fresh)
    return True


def _cut(fd, kind, flags):
    """Replaces it with something whose other side is gone."""
    inheritable = not flags & O_CLOEXEC
    if kind == 0 and _target(fd) == "anon_inode:[eventpoll]":
        import select
        fresh = select.epoll()
        dup2(fresh.fileno(), fd, inheritable)
        fresh.close()
        return
    ends = _socket_ends() if kind == SOCKET else pipe()
    ours = 1 if kind != SOCKET and flags & 3 == 1 else 0
    close(ends[1 - ours])
    dup2(ends[ours], fd, inheritable)
    close(ends[ours])


def _socket_ends():
    try:
        from _socket import socketpair
    except ImportError:
        return pipe()
    return [end.detach() for end in socketpair()]


# What must not be the same twice.

def _random_numbers(modules):
    random = modules.get("random")
    instance = getattr(random, "_inst", None)
    return instance.getstate() if instance is not None else None


def _keep_numbers(modules, numbers):
    """Restores the numbers: the interpreter itself has reseeded them when it was
    forked."""
    instance = getattr(modules.get("random"), "_inst", None)
    if instance is not None and numbers is not None:
        instance.setstate(numbers)


def _reseed(modules):
    """Reseeds these; the interpreter itself has reseeded only `random`."""
    numpy = modules.get("numpy.random")
    if numpy is not None:
        _quietly(lambda: numpy.seed())
    ssl = modules.get("ssl")
    if ssl is not None:
        _quietly(lambda: ssl.RAND_add(urandom(32), 32.0))
    uuid = modules.get("uuid")
    if uuid is not None:
        for name in list(vars(uuid)):
            if name.startswith("_last_timestamp") or name.startswith("_last_counter"):
                setattr(uuid, name, None if "timestamp" in name else 0)


def _quietly(action):
    try:
        action()
    except Exception:
        pass


def _forget_endings(modules):
    """Prevents what the original does at its end, such as removing its temporary
    directories, from being done a second time."""
    atexit = modules.get("atexit")
    if atexit is not None:
        atexit._clear()
    weakref = modules.get("weakref")
    finalize = getattr(weakref, "finalize", None)
    if finalize is not None:
        for info in finalize._registry.values():
            info.atexit = False
        finalize._registered_with_atexit = False


def _forget_children(modules):
    """Forgets the children of `multiprocessing`, which are the original's: they are
    neither waited for nor ended from here."""
    process = modules.get("multiprocessing.process")
    if process is not None:
        _quietly(lambda: process._children.clear())


def _renew_loops(kernel):
    """Renews event loops: a loop waits on an epoll instance and wakes itself by a
    socket, both of which were the original's."""
    if "asyncio.events" not in kernel.modules:
        return
    loop = load("aio").find_loop(kernel, False)
    selector = getattr(loop, "_selector", None)
    if loop is None or selector is None or loop.is_closed():
        return
    waits = [key for key in selector.get_map().values()]
    own = getattr(getattr(loop, "_ssock", None), "fileno", lambda: -1)()
    fresh = type(selector)()
    loop._selector = fresh
    selector.close()
    loop._ssock.close()
    loop._csock.close()
    loop._ssock = loop._csock = None
    loop._internal_fds -= 1
    loop._make_self_pipe()
    for key in waits:
        if key.fd != own:
            _quietly(lambda: fresh.register(key.fileobj, key.events, key.data))


def _mark(kernel, session):
    """Sets the variable that tells processes apart: in what children inherit, and in
    what the system shows of this process."""
    before = kernel.environ.get(MARKER)
    kernel.environ[MARKER] = session
    with_name = (MARKER + "=").encode()
    fields = _read_all("/proc/self/stat").rpartition(b")")[2].split()
    start, end = int(fields[ENV_START]), int(fields[ENV_END])
    try:
        memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC)
    except PermissionError:  # closed to others in a sandbox: the system shows it to nobody
        return
    try:
        block = pread(memory, end - start, start)
        at = (b"\0" + block).find(b"\0" + with_name)
        value = session.encode()
        old = block[at + len(with_name):].partition(b"\0")[0] if at >= 0 else b""
        if at < 0 or len(old) != len(value):
            raise RuntimeError("the environment of the process cannot be marked (%s)" % before)
        pwrite(memory, value, start + at + len(with_name))
    finally:
        close(memory)


def _read_all(path):
    fd = open(path, O_RDONLY | O_CLOEXEC)
    try:
        return read(fd, 1 << 16)
    finally:
        close(fd)
