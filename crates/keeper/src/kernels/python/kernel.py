"""What lives on between runs, and the loop that takes orders.

Invariants:
- No interrupt is ever raised in a frame of the driver itself. SIGINT strikes only while
  `active` is set and the top frame is the user's (or works for the user); at any other
  moment it is noted, and honoured if user code has not started yet.
- Each request is answered by the process that was asked, never by a child that user
  code forked.
"""
import os
import sys
from _signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, getsignal, signal
from posix import _exit, getpid
from time import monotonic

channel = load("channel")
source = load("source")
streams = load("streams")
run = load("run")
sealing = load("seals")

# Checking whether the driver is whole takes a third of the time of a small run, and
# much more if other processes have used the caches meanwhile. So it is done after every
# run only as long as no more than ten come in a second; a few may come at once.
LOOK_EVERY = 0.1
LOOKS_AT_ONCE = 4


def serve(directory, main, path):
    kernel = Kernel(directory, main, path)
    ready = {"op": "ready", "version": sys.version.split()[0], "executable": sys.executable}
    kernel.channel.send(channel.encode(ready))
    loop(kernel)


class Kernel:
    def __init__(self, directory, main, path):
        self.pid = getpid()
        self.main = main
        self.space = main.__dict__
        self.modules = sys.modules
        self.environ = os.environ
        self._began_with = dict(os.environ)
        self.plain_hook = sys.excepthook
        self.sources = source.Sources()
        self.compiler = source.Compiler()
        self.streams = streams.Streams()
        self.channel = channel.Channel(directory)
        self.null = channel.Held(os.devnull, os.O_RDWR)
        self.reserve = channel.Reserve(os.devnull)
        load.make_room, load.take_room = self.reserve.release, self.reserve.take
        self.active = False
        self.pending = False
        self.cancel = None  # set by `aio` while a loop runs in the foreground
        self.flow = None  # set by `background`: where this run's followers write
        self.imports = None
        self.frozen = False  # an image: nothing goes on in it
        self.is_fork = False
        self.running = False  # between a message and its answer: 1 and 2 are a run's
        self.user_handler = None
        self.tracer = self.profiler = None
        self.inspect_seen = False
        self.matplotlib_hint = False
        self.mended = False  # by `seals`, and not told yet
        self.unsure = None  # a report that may not have been believed
        self._path = path
        self.on_sigint = _make_handler(self)
        signal(SIGINT, self.on_sigint)

    def import_standard(self, name):
        """Imports for the driver's own use: ignores a file of that name in the user's
        directory, and is never torn by an interrupt, which waits until it is done."""
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


def _make_handler(kernel):
    is_shielded = load.is_shielded

    def interrupt(signum, frame):
        if kernel.active:
            if kernel.cancel is not None and kernel.cancel(frame):
                return
            if not is_shielded(frame):
                raise KeyboardInterrupt
        kernel.pending = True

    return interrupt


def loop(kernel):
    modules = kernel.modules

    def idle(ctl):
        """Lets asyncio tasks go on while there is no request."""
        if "asyncio.events" in modules and not kernel.frozen:
            load("aio").idle(kernel, ctl)
            if getpid() != kernel.pid:
                _exit(0)

    # All of it in this frame, which no other code can change: see `seals`.
    seals, bonds, outline = load.seals, sealing.seal_objects(kernel), sealing.outline(load.seals)
    is_whole, mend = sealing.is_whole.__code__, sealing.mend.__code__
    tools, mending, new_function = sealing.TOOLS, sealing.MENDING, type(loop)
    now, look_every, saved_up = monotonic, LOOK_EVERY, LOOK_EVERY * LOOKS_AT_ONCE
    look_from = now() - saved_up
    owes_look = must_look = False
    held = []
    while True:
        if owes_look and (must_look or now() >= look_from):
            owes_look = must_look = False
            if look_from < now() - saved_up:
                look_from = now() - saved_up
            look_from += look_every
            if not new_function(is_whole, {"__builtins__": {}})(outline, bonds, tools):
                new_function(mend, {"__builtins__": {}})(seals, bonds, *mending)
                kernel.mended = True
            kernel.reserve.take()  # user code may have closed it
            if load.seals is not seals and load.seals[:len(seals)] == seals:  # a part was loaded
                seals = load.seals
                outline = sealing.outline(seals)
        message = held.pop(0) if held else kernel.channel.receive(idle)
        if message is None:
            return _end(kernel)
        operation = message.get("op") if type(message) is dict else None
        if owes_look and (operation != "run" or now() >= look_from):
            must_look = True
            held.insert(0, message)
        elif operation == "run":
            run.answer(kernel, message)
            owes_look = True
        elif operation == "again":
            run.answer_again(kernel)
        elif operation == "state":
            _answer_state(kernel)
        elif operation == "release":
            held += _let_go(kernel)
        elif operation == "fork":
            if not load("forking").answer(kernel, message):
                held = []
                bonds = sealing.seal_objects(kernel)
        elif operation == "dump":
            load("carry").answer_dump(kernel, message)
        elif operation == "load":
            load("carry").answer_load(kernel, message)
        elif operation == "exit":
            return _end(kernel)


def _end(kernel):
    """Ends the kernel. Normally the interpreter does that. A fork shares objects with
    the original, and must not repeat what they do when they end."""
    if kernel.frozen:
        _exit(0)
    if kernel.is_fork:
        atexit = kernel.modules.get("atexit")
        try:
            if atexit is not None:
                atexit._run_exitfuncs()
            kernel.streams.settle([])
        finally:
            _exit(0)


def _answer_state(kernel):
    try:
        text = channel.encode(load("state").report(kernel))
    except BaseException as problem:
        text = channel.encode({"op": "state", "error": repr(problem)})
    kernel.channel.send(text)


def _let_go(kernel):
    """Waits for our terminal to hang up, which must not end us.

    Returns the requests that came meanwhile.
    """
    before = getsignal(SIGHUP)
    signal(SIGHUP, SIG_IGN)
    kernel.channel.send('{"op":"letgo"}')
    held = []
    while True:
        message = kernel.channel.receive(lambda ctl: None)
        if message is None or message.get("op") == "released":
            break
        held.append(message)
    # A handler that was not set from Python cannot be restored.
    signal(SIGHUP, SIG_DFL if before is None else before)
    return held
