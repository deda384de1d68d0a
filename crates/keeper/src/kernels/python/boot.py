"""Boot: hide ourselves, then load the parts that lie next to this file and serve.

  kernel      what lives on between runs, the loop  display     a value as text, HTML, PNG
  run         one run                               errors      tracebacks and exit codes
  channel     control FIFOs, JSON, our descriptors  habits      `!ls`, `%cd`, `pip install`
  source      text to code, lines for tracebacks    magics      what those lines call
  streams     sys.stdin, sys.stdout, sys.stderr     imports     what user code imported
  background  threads and tasks that live on        state       what is remembered
  aio         top-level await                       carry       the namespace in a file
  pickled     values as bytes                       defined     typed functions, by their text
  forking     copies of this process                seals       what was changed of us, put back
The parts of the right column, `background`, `aio`, `pickled` and `forking` load when
first needed: start-up time is budgeted.

Invariants:
- User code sees a `__main__` of its own; neither this file nor its directory is
  in sys.path, sys.argv or sys.modules.
- Every part runs on a private copy of the builtins, taken before any user code:
  `del builtins.len` must not reach us. The same dictionary tells our frames from
  the user's (see `is_ours`, `is_shielded`).

Must not: import anything that a bare interpreter has not loaded, beyond a few
modules written in C; leave a trace in the user's namespace.
"""
import builtins
import os
import sys
from time import sleep

# Parts that work on the user's behalf (a write, a repr): an interrupt may strike inside
# them. Everywhere else in the driver it is only noted.
INTERRUPTIBLE = ("display", "errors", "magics", "streams")
# Pieces that are separated at the top level are compiled separately: the memory that
# the compiler needs for a text (some fifty times its size) is reused, but never given
# back.
GAP = b"\n\n\n"
WITHOUT_DOCSTRINGS = 2
# In seconds: the keeper looks at a run every 3.2 at the least.
WAITS = (0.01,) * 500 + (None,)
# Attributes of a module that no part needs: `seals` compares all that exist.
UNUSED = ("__doc__", "__loader__", "__package__", "__spec__")


def make_loader(folder):
    shielded = dict(vars(builtins))
    exposed = dict(shielded)
    globals()["__builtins__"] = shielded
    open_file, compile_text, run_text = open, compile, exec
    new_module = type(sys)
    parts = {}
    # Digests of the files as they are before any user code, which could write to them.
    # The hash is keyed with a secret of this process, and costs only one number per
    # part.
    digest = hash
    digests = {}
    all_builtins = tuple(shielded.items())

    def move(to):
        """Changes the folder: a fork outlives the directory of its original."""
        nonlocal folder
        folder = to

    def load(name):
        part = parts.get(name)
        if part is None:
            # A part may use builtins that none has used before: see `seals`.
            shielded.update(all_builtins)
            exposed.update(all_builtins)
            part = new_module("sessile_" + name)
            space = part.__dict__
            space["__builtins__"] = exposed if name in INTERRUPTIBLE else shielded
            space["load"] = load
            load.make_room()
            try:
                text = read(name)
            finally:
                load.take_room()
            if digests.get(name) != digest(text):
                raise ImportError("the file of the driver's part %r was changed" % name)
            fill(space, text, "<sessile %s>" % name)
            for unused in UNUSED:
                del space[unused]
            parts[name] = part
            load.seals += (load("seals").seal(space),)
        return part

    def read(name):
        """A file that somebody has removed comes back: the keeper notices that the
        directory is gone, and makes it anew."""
        for wait in WAITS:
            try:
                with open_file(folder + "/" + name + ".py", "rb") as file:
                    return file.read()
            except FileNotFoundError:
                if wait is None:
                    raise
                sleep(wait)

    def fill(space, text, name):
        line = 0
        for piece in text.split(GAP):
            lines = b"\n" * line + piece
            run_text(compile_text(lines, name, "exec", 0, True, WITHOUT_DOCSTRINGS), space)
            line += piece.count(b"\n") + len(GAP)

    def is_shielded(frame):
        return frame.f_globals.get("__builtins__") is shielded

    def is_ours(frame):
        found = frame.f_globals.get("__builtins__")
        return found is shielded or found is exposed

    for entry in os.listdir(folder):
        name, is_part, _ = entry.rpartition(".py")
        if is_part:
            digests[name] = digest(read(name))
    load.move = move
    # The seals of each part; the builtins have no functions of ours.
    load.seals = tuple([(own, tuple(own), tuple(own.values()), (), (), (), ()) for own in (shielded, exposed)])
    # For when user code has no descriptor left: see `channel.Reserve`.
    load.make_room = load.take_room = lambda: None
    load.is_shielded = is_shielded
    load.is_ours = is_ours
    load.builtins = shielded
    # For parts that load late: after `sys.modules.clear()`, import finds another sys.
    load.sys = sys
    return load


def hide(folder):
    """Makes the interpreter look as if it had been started without a script."""
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(folder):
        del sys.path[0]
    path = list(sys.path)
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, "")
    sys.argv[:] = [""]
    if hasattr(sys, "orig_argv"):
        del sys.orig_argv[1:]
    main = type(sys)("__main__")
    main.__builtins__ = builtins
    # As in the interactive interpreter: pickle, inspect and multiprocessing look here.
    main.__loader__ = sys.modules["_frozen_importlib"].BuiltinImporter
    sys.modules["__main__"] = main
    return main, path


def boot():
    folder = os.path.dirname(os.path.abspath(__file__))
    directory = os.path.abspath(sys.argv[1])
    load = make_loader(folder)
    main, path = hide(folder)
    load("kernel").serve(directory, main, path)
