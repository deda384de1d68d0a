"""The user's namespace in a file (a dump), and how a fresh kernel takes it over.

A fork of the kernel writes the dump, so that the kernel is free at once and whatever
the user's `__reduce__` does stays in the fork. The fork is no child that user code
could wait for; the keeper becomes its parent, learns its pid from us and its outcome,
when it has ended, from the file `<dump>.report`.

Names that share an object are pickled together, so that they share it again; all others
separately, so that one which cannot be loaded affects no other.

  a dump:  MAGIC  length (8)  CRC-32 (4)  a pickle of plain values

Must not: load what the keeper has not ordered to be loaded, because that runs code.
"""
import os
from _signal import SIG_DFL, SIGINT, signal
from posix import _exit, close, dup2, getpid, write

sys = load.sys
channel = load("channel")
pickled = load("pickled")
defined = load("defined")

MAGIC = b"sessile python dump 1\n"
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
MARKER = "SESSILE_SESSION_ID"
MOST_LEFT = 1000
MOST_REASON = 300
# Limit for separate copies of names, in case they cannot be loaded together.
MOST_SPARE = 64 << 20
ModuleType = type(sys)
# Names of the interactive interpreter, and ours.
NOT_CARRIED = {"_", "__", "___", "__builtins__"}

KINDS = {"_io.TextIOWrapper": "an open file", "_io.BufferedReader": "an open file",
         "_io.BufferedWriter": "an open file", "_io.BufferedRandom": "an open file",
         "_io.FileIO": "an open file", "socket": "a socket", "SSLContext": "an SSL context",
         "_thread.lock": "a lock", "_thread.RLock": "a lock", "_thread._local": "data of a thread",
         "generator": "a generator", "coroutine": "a coroutine", "async_generator": "a generator",
         "frame": "a stack frame", "traceback": "a traceback", "memoryview": "a memoryview",
         "sqlite3.Connection": "a database connection", "sqlite3.Cursor": "a database connection",
         "weakref": "a weak reference", "weakref.ReferenceType": "a weak reference",
         "_asyncio.Task": "a task", "_asyncio.Future": "a future",
         "mmap.mmap": "a memory map", "select.epoll": "an epoll object"}


# Dumping, in the kernel.

def answer_dump(kernel, message):
    path = message.get("path")
    try:
        # The fork does not have them.
        threads = load("state")._threads(kernel.modules)
        pid = _fork_away(kernel, path, threads)
        report = {"op": "dumping", "path": path, "pid": pid}
    except OSError as problem:
        report = {"op": "dumped", "path": path, "carried": 0, "left": [], "error": _words(problem)}
    kernel.channel.send(channel.encode(report))


def _fork_away(kernel, path, threads):
    """Has a copy of this process write the dump. Returns its pid."""
    is_original, problem, pid = load("forking").split()
    if not is_original:
        _write_dump_as(kernel, path, threads)
    if pid is None:
        raise OSError("cannot fork: %s" % (problem or "the copy ended at once"))
    return pid


def _write_dump_as(kernel, path, threads):
    try:
        signal(SIGINT, SIG_DFL)
        _write_dump(kernel, path, threads)
    finally:
        _exit(0)


# Dumping, in the fork.

def _write_dump(kernel, path, threads):
    null = kernel.null.fd()
    for number in (0, 1, 2):
        dup2(null, number)
    kernel.pid = getpid()
    report = {"op": "dumped", "path": path, "carried": 0, "left": [], "error": None}
    try:
        content, left = _gather(kernel, threads)
        _write_file(path, _sealed(kernel, content))
        report["carried"] = len(content["modules"]) + sum([len(group[0]) for group in content["groups"]])
        report["left"] = left[:MOST_LEFT]
    except BaseException as problem:
        report["error"] = _words(problem)
    try:
        text = channel.encode(report).encode("ascii")
        _write_file(path + ".tmp", text)
        os.rename(path + ".tmp", path + ".report")
    except BaseException:
        pass
    _exit(0)


def _write_file(path, data):
    fd = channel.open(path, NEW_FILE, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[write(fd, view[:1 << 24]):]
    except BaseException:
        os.unlink(path)
        raise
    finally:
        close(fd)


def _sealed(kernel, content):
    pickle = kernel.import_standard("_pickle")
    body = pickle.dumps(content, pickled.PROTOCOL)
    crc = kernel.import_standard("binascii").crc32(body)
    return MAGIC + len(body).to_bytes(8, "little") + crc.to_bytes(4, "little") + body


def _gather(kernel, threads):
    kernel.modules[pickled.MODULE] = pickled
    library = defined.Library(kernel, dict(reversed(list(kernel.sources.newest_first()))))
    modules, values, left = [], {}, []
    for name, value in list(kernel.space.items()):
        if type(name) is not str or name in NOT_CARRIED or name[:2] == name[-2:] == "__":
            continue
        if type(value) is ModuleType and kernel.modules.get(value.__name__) is value:
            modules.append((name, value.__name__))
        elif value is kernel.space:
            left.append({"name": name, "reason": "it is the namespace itself"})
        else:
            values[name] = value
    packer = _Packer(kernel, library)
    groups = packer.pack(values)
    for name in threads:
        left.append({"name": name, "reason": "a thread cannot be carried"})
    left += packer.left
    content = {"python": "%d.%d.%d" % sys.version_info[:3], "names": list(kernel.space),
               "texts": library.used, "features": library.features(kernel.compiler._flags),
               "modules": modules, "imports": kernel.imports.names() if kernel.imports is not None else [],
               "members": packer.members, "groups": groups, "cwd": _directory(),
               "environment": _changes_of_environment(kernel), "path": _changes_of_path(kernel)}
    return content, left


def _directory():
    try:
        return channel.getcwd()
    except OSError:
        return None


def _changes_of_environment(kernel):
    """Returns what to set and what to unset, compared to the kernel's start."""
    try:
        with load.builtins["open"]("/proc/self/environ", "rb") as file:
            pairs = [item.partition(b"=") for item in file.read().split(b"\0") if b"=" in item]
        before = {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    except PermissionError:  # in a sandbox a kernel is closed to others, and this is root's
        before = dict(kernel._began_with)
    now = {key: value for key, value in kernel.environ.items()}
    # The session's id is not part of it.
    before.pop(MARKER, None)
    now.pop(MARKER, None)
    changed = {key: value for key, value in now.items() if before.get(key) != value}
    return changed, [key for key in before if key not in now]


def _changes_of_path(kernel):
    """Returns what was put before and after the entries that the interpreter began
    with."""
    path = [entry for entry in sys.path if type(entry) is str]
    own = set(kernel._path)
    own.add("")
    at = [index for index, entry in enumerate(path) if entry in own]
    first, last = (at[0], at[-1]) if at else (len(path), len(path))
    before = [entry for entry in path[:first]]
    behind = [entry for entry in path[first:] if entry not in own]
    return before, behind


class _Packer:
    """Packs values by name into groups of bytes."""

    def __init__(self, kernel, library):
        self._kernel, self._space = kernel, kernel.space
        self._io = kernel.import_standard("_io")
        plain = kernel.import_standard("_pickle").Pickler
        self._picklers = [(None, pickled.pickler_class(kernel, library, plain))]
        self._library = library
        self._has_looked = False
        self.left = []
        self.members = []  # (name, module, attribute): what a module has under a name

    def pack(self, values):
        """Returns [names, library or None, bytes, separate bytes of each name]."""
        alone, owner, parent = {}, {}, {}

        def root(name):
            while parent[name] != name:
                name = parent[name]
            return name

        keep = []
        for name, value in values.items():
            found = self._pickle_alone(name, value)
            if found is None:
                continue
            tier, data, shared = found
            alone[name] = (tier, data)
            parent[name] = name
            keep.append(shared)  # or an address may be used again
            for address in shared:
                other = root(owner.setdefault(address, name))
                parent[other] = root(name)
        groups = {}
        for name in alone:
            groups.setdefault(root(name), []).append(name)
        return [self._group(names, values, alone) for names in groups.values()]

    def _group(self, names, values, alone):
        tier = max([alone[name][0] for name in names])
        spare = {name: alone[name][1] for name in names}
        if len(names) > 1:
            try:
                together = {name: values[name] for name in names}
                data = self._dump(tier, together)[0]
                if sum([len(data) for data in spare.values()]) > MOST_SPARE:
                    spare = {}
                return [names, self._picklers[tier][0], data, spare]
            except Exception:  # apart they can be: better than nothing
                return [names, self._picklers[tier][0], None, spare]
        return [names, self._picklers[tier][0], None, spare]

    def _pickle_alone(self, name, value):
        refusal = None
        for tier in (0, 1):
            if tier == 1:
                self._look_for_libraries()
            if tier == len(self._picklers):
                break
            try:
                data, memo = self._dump(tier, value)
                shared = {address: item for address, (_, item) in memo.items()
                          if pickled.is_shared(item, self._space)}
                return tier, data, shared
            except Exception as problem:
                refusal = refusal or problem
        for module in self._kernel.imports.names() if self._kernel.imports is not None else ():
            found = self._kernel.modules.get(module)
            if getattr(found, "__dict__", {}).get(name, self) is value:
                self.members.append((name, module, name))
                return None
        self.left.append({"name": name, "reason": _reason(value, refusal)})
        return None

    def _dump(self, tier, value):
        buffer = self._io.BytesIO()
        pickler = self._picklers[tier][1](buffer, pickled.PROTOCOL)
        pickler.dump(value)
        return buffer.getvalue(), pickler.memo.copy()

    def _look_for_libraries(self):
        """Looks for cloudpickle or dill, for what pickle alone refuses."""
        if self._has_looked:
            return
        self._has_looked = True
        for name in ("cloudpickle", "dill"):
            try:
                base = __import__(name).Pickler
                carrier = pickled.pickler_class(self._kernel, self._library, base, is_able=True)
                self._picklers.append((name, carrier))
                return
            except Exception:
                continue


def _reason(value, problem):
    kind = type(value)
    full = kind.__name__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__name__)
    if full == "socket.socket":
        return "a socket cannot be carried"
    if full in KINDS:
        return KINDS[full] + " cannot be carried"
    if full == "subprocess.Popen":
        return "a process cannot be carried"
    if full == "threading.Thread":
        return "a thread cannot be carried"
    text = _text(problem)
    if isinstance(problem, pickled.Unknown):
        return text
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    quoted = text.split("'")
    inner = quoted[1] if len(quoted) > 2 and text.startswith("cannot pickle") else None
    if inner in KINDS and inner != kind.__name__:
        return "it holds %s, which cannot be carried" % KINDS[inner]
    if inner is not None:
        return "%s cannot be pickled" % ("a " + inner if inner == full else "it holds a " + inner + ", which")
    return "it cannot be pickled: " + (text or type(problem).__name__)


def _text(problem):
    try:
        return " ".join(str(problem).split())[:MOST_REASON]
    except Exception:
        return type(problem).__name__


def _words(problem):
    text = _text(problem)
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror.lower()
    return "%s: %s" % (type(problem).__name__, text) if text else type(problem).__name__


# Loading.

def answer_load(kernel, message):
    report = {"op": "loaded", "carried": 0, "left": [], "error": None}
    try:
        content = _opened(kernel, message["path"])
    except BaseException as problem:
        report["error"] = _words(problem)
    else:
        try:
            report["carried"], left = _take_over(kernel, content, message.get("cwd"))
            report["left"] = left[:MOST_LEFT]
        except BaseException as problem:
            report["error"] = _words(problem)
    kernel.channel.send(channel.encode(report))


class Damaged(Exception):
    pass


def _opened(kernel, path):
    with load.builtins["open"](path, "rb") as file:
        head = file.read(len(MAGIC) + 12)
        body = file.read()
    if head[:len(MAGIC)] != MAGIC or len(head) < len(MAGIC) + 12:
        raise Damaged("it is not a dump of this version")
    length = int.from_bytes(head[len(MAGIC):-4], "little")
    crc = int.from_bytes(head[-4:], "little")
    if length != len(body) or crc != kernel.import_standard("binascii").crc32(body):
        raise Damaged("its checksum is wrong")
    return kernel.import_standard("_pickle").loads(body)


def _take_over(kernel, content, cwd):
    left = []
    library = defined.Library(kernel, content["texts"])
    kernel.compiler._flags |= library.flags(content["features"])
    for name, text in content["texts"].items():
        kernel.sources.keep(name, text)
    _set_around(kernel, content, cwd or content["cwd"], left)
    load("run").expect_imports(kernel)
    found = {}
    _import_all(kernel, content, found, left)
    loader = pickled.Loader(kernel, library)
    for names, maker, data, spare in content["groups"]:
        _unpack(kernel, loader, names, maker, data, spare, found, left)
    for name in content["names"]:
        if name in found:
            # A class that is loaded may have bound the name itself: the order of a
            # namespace is that of the first binding.
            kernel.space.pop(name, None)
            kernel.space[name] = found[name]
    return len(found), left


def _set_around(kernel, content, cwd, left):
    if cwd is not None:
        try:
            os.chdir(cwd)
        except OSError as problem:
            reason = "%s: %s" % (cwd, problem.strerror.lower())
            left.append({"name": "the working directory", "reason": reason})
    changed, removed = content["environment"]
    for key in removed:
        kernel.environ.pop(key, None)
    for key, value in changed.items():
        kernel.environ[key] = value
    before, behind = content["path"]
    known = set(sys.path)
    sys.path[:0] = [entry for entry in before if entry not in known]
    sys.path += [entry for entry in behind if entry not in known]


def _import_all(kernel, content, found, left):
    modules = kernel.modules
    for module in content["imports"]:
        try:
            __import__(module)
            kernel.imports.add(module)
        except BaseException:
            pass  # told by the name that it is missed under
    for name, module in content["modules"]:
        try:
            __import__(module)
            found[name] = modules[module]
        except BaseException as problem:
            left.append({"name": name, "reason": "module %s cannot be imported: %s" % (module, _words(problem))})
    for name, module, attribute in content["members"]:
        try:
            __import__(module)
            found[name] = getattr(modules[module], attribute)
        except BaseException as problem:
            left.append({"name": name, "reason": "module %s does not have it: %s" % (module, _words(problem))})


def _unpack(kernel, loader, names, maker, data, spare, found, left):
    try:
        base = kernel.import_standard("_pickle").Unpickler
        if maker == "dill":
            base = __import__("dill").Unpickler
        if data is not None:
            values = loader.values(data, base)
            found.update({name: values[name] for name in names})
            return
    except BaseException as problem:
        if not spare:
            left += [{"name": name, "reason": _failure(problem)} for name in names]
            return
    for name in names:
        try:
            found[name] = loader.values(spare[name], base)
        except BaseException as problem:
            left.append({"name": name, "reason": _failure(problem)})


def _failure(problem):
    return "it cannot be loaded: " + _words(problem)
