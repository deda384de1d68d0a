"""Executes the lines of `habits`, in the user's namespace and on the run's streams.

Must not raise for a command that fails: a notebook does not. The run's notes say so
instead. (A `%%bash` cell that fails does raise, there as here.)
"""
import builtins
import os
import re

sys = load.sys

NAME = re.compile(r"\{\{|\}\}|\{([^{}\n]+)\}|\$\$|\$([A-Za-z_]\w*)")
# The kernel's limit for one argument is 128 KiB; longer scripts go through stdin.
MOST_ARGUMENT = 100000
SHELL_WORDS = ("ls", "cat", "cp", "mv", "mkdir", "rm", "rmdir", "ll", "conda", "mamba", "uv")
IGNORED = ("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "colors", "pylab")


def offer(kernel, name, notes):
    """Puts the entry point where rewritten lines find it."""
    def line(kind, rest, body=None):
        frame = sys._getframe(1)
        call = Call(kernel, notes, frame.f_globals, frame.f_locals)
        if body is not None:
            return CELLS[kind[2:]](call, rest, body)
        return LINES[kind](call, rest)

    builtins.__dict__[name] = line


class Call:
    def __init__(self, kernel, notes, space, local):
        self.kernel, self.notes, self.space, self.local = kernel, notes, space, local

    def expand(self, text):
        """Expands the user's `{expression}` and `$name`; what is not Python is left to
        the shell."""
        def value(match):
            whole, expression, name = match.group(0), match.group(1), match.group(2)
            if whole in ("{{", "}}", "$$"):
                return whole[0]
            if name is not None:
                found = self.local.get(name, self.space.get(name, match))
                return whole if found is match else str(found)
            try:
                return str(eval(expression, self.space, self.local))
            except Exception:
                return whole

        return NAME.sub(value, text)

    def run(self, command, **options):
        subprocess = self.kernel.import_standard("subprocess")
        sys.stdout.flush()
        done = subprocess.run(_shell() + ["-c", command], **options)
        self.space["_exit_code"] = done.returncode
        if done.returncode:
            self.notes.append("exit status %d: %s" % (done.returncode, command[:200]))
        return done


def _shell():
    for path in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"):
        if os.path.exists(path):
            return [path]
    return ["/bin/sh"]


def _own_pip(command):
    """Makes `!pip install` use this interpreter's pip, whatever is first on PATH."""
    import shlex
    match = re.match(r"pip3?(\s|$)", command)
    if match is None:
        return command
    return "%s -m pip %s" % (shlex.quote(sys.executable), command[match.end():])


def _system(call, rest):
    command = _own_pip(call.expand(rest))
    call.run(command)
    if " -m pip " in command:
        _forget_finders()


def _capture(call, rest):
    subprocess = call.kernel.import_standard("subprocess")
    done = call.run(_own_pip(call.expand(rest)), stdout=subprocess.PIPE)
    return done.stdout.decode("utf-8", "surrogateescape").splitlines()


def _pip(call, rest):
    _system(call, "pip " + rest)


def _forget_finders():
    """Makes a package importable that was not there a moment ago."""
    import importlib
    importlib.invalidate_caches()


def _cd(call, rest):
    target = call.expand(rest).strip().strip("'\"")
    before = os.getcwd()
    if target == "-":
        target = getattr(_cd, "before", before)
    os.chdir(os.path.expanduser(target or "~"))
    _cd.before = before
    print(os.getcwd())


def _pwd(call, rest):
    return os.getcwd()


def _env(call, rest):
    if not rest:
        return dict(os.environ)
    separator = "=" if "=" in rest else " "
    name, found, value = rest.partition(separator)
    if not found:
        return os.environ.get(name.strip())
    os.environ[name.strip()] = call.expand(value.strip())
    print("env: %s=%s" % (name.strip(), os.environ[name.strip()]))


def _time(call, rest):
    return _timed(call, rest)


def _timed(call, text):
    import time
    tree = compile(text, "<timed>", "exec", 0x400, True)
    last = None
    if tree.body and type(tree.body[-1]).__name__ == "Expr":
        import _ast
        last = compile(_ast.Expression(tree.body.pop().value), "<timed>", "eval", 0, True)
    body = compile(tree, "<timed>", "exec", 0, True)
    wall, cpu = time.perf_counter(), time.process_time()
    exec(body, call.space, call.local)
    value = eval(last, call.space, call.local) if last is not None else None
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print("CPU times: %s\nWall time: %s" % (_duration(cpu), _duration(wall)))
    return value


def _timeit(call, rest, setup="pass"):
    timeit = call.kernel.import_standard("timeit")
    number, repeat = 0, 7
    while True:
        match = re.match(r"-([nr])\s*(\d+)\s+", rest)
        if match is None:
            break
        number = int(match.group(2)) if match.group(1) == "n" else number
        repeat = int(match.group(2)) if match.group(1) == "r" else repeat
        rest = rest[match.end():]
    timer = timeit.Timer(rest, setup, globals=call.space)
    number = number or timer.autorange()[0]
    times = [total / number for total in timer.repeat(repeat, number)]
    mean = sum(times) / len(times)
    spread = (sum([(each - mean) ** 2 for each in times]) / len(times)) ** 0.5
    print("%s \u00b1 %s per loop (mean \u00b1 std. dev. of %d runs, %d loops each)"
          % (_duration(mean), _duration(spread), repeat, number))


def _duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("\u00b5s", 1e6)):
        if seconds * scale >= 1:
            return "%.3g %s" % (seconds * scale, unit)
    return "%.3g ns" % (seconds * 1e9)


def _ignore(call, rest):
    pass


def _word(word):
    return lambda call, rest: _system(call, word + " " + rest)


def _script(shell):
    def run(call, rest, body):
        subprocess = call.kernel.import_standard("subprocess")
        program = _shell() if shell == "bash" else ["/bin/sh"]
        sys.stdout.flush()
        if len(body) < MOST_ARGUMENT:
            done = subprocess.run(program + ["-c", body, shell] + rest.split())
        else:
            done = subprocess.run(program + ["-s", "--"] + rest.split(), input=body.encode())
        call.space["_exit_code"] = done.returncode
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, shell)
    return run


def _write_file(call, rest, body):
    words = rest.split()
    mode = "a" if "-a" in words else "w"
    path = os.path.expanduser(" ".join([word for word in words if word != "-a"]).strip("'\""))
    with open(path, mode, encoding="utf-8") as file:
        file.write(body)
    print("Writing %s" % path if mode == "w" else "Appending to %s" % path)


LINES = {"system": _system, "capture": _capture, "sx": _capture, "sh": _system, "pip": _pip, "cd": _cd,
         "pwd": _pwd, "env": _env, "set_env": _env, "time": _time, "timeit": _timeit}
LINES.update({word: _ignore for word in IGNORED})
LINES.update({word: _word(word) for word in SHELL_WORDS})
CELLS = {"bash": _script("bash"), "sh": _script("sh"), "writefile": _write_file, "file": _write_file,
         "time": lambda call, rest, body: _timed(call, (rest + "\n" if rest else "") + body),
         "timeit": lambda call, rest, body: _timeit(call, (rest + " " if rest else "") + body)}
