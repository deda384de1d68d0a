"""Reports a failed run: traceback, exit code, `error`.

Invariants: a traceback shows the user's frames and none of ours, in chained and grouped
exceptions too; the user's hook is honoured; nothing in here fails because an
exception's own methods do.
"""
sys = load.sys
write = load("channel").write

INTERRUPTED = 130
MOST_TEXT = 65536


def report(kernel, problem):
    strip(problem)
    if isinstance(problem, SystemExit):
        return _report_exit(problem)
    _remember(problem)
    hook = getattr(sys, "excepthook", None)
    if hook is None or hook is kernel.plain_hook:
        show(kernel, problem)
    else:
        _call_hook(kernel, hook, problem)
    exit_code = INTERRUPTED if isinstance(problem, KeyboardInterrupt) else 1
    return exit_code, describe(problem)


def describe(problem):
    try:
        message = str(problem)
    except Exception:
        message = "<exception str() failed>"
    return {"type": type(problem).__name__, "message": str.__str__(message)[:MOST_TEXT]}


def last_resort(problem, second):
    """Writes only the name, because reporting itself failed or was interrupted."""
    name = type(problem).__name__
    try:
        write(2, ("%s\n(its traceback could not be shown: %s)\n"
                     % (name, type(second).__name__)).encode("utf-8", "replace"))
    except OSError:
        pass
    exit_code = INTERRUPTED if isinstance(problem, KeyboardInterrupt) else 1
    return exit_code, {"type": name, "message": ""}


def _report_exit(problem):
    code = problem.code
    if code is None:
        return 0, None
    if isinstance(code, int):
        exit_code = int(code) & 0xFF
    else:
        print(code, file=sys.stderr, flush=True)
        exit_code = 1
    return exit_code, describe(problem) if exit_code else None


def _remember(problem):
    """Sets sys.last_* for pdb.pm() and the like, as the interactive interpreter does."""
    sys.last_type, sys.last_value = type(problem), problem
    sys.last_traceback = problem.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = problem


def show(kernel, problem):
    try:
        traceback = kernel.import_standard("traceback")
        kernel.sources.attach(kernel.import_standard("linecache"))
        lines = traceback.format_exception(type(problem), problem, problem.__traceback__)
    except Exception:  # user code has damaged what the library needs
        lines = _format_bare(problem)
    _write_error("".join(lines))


def _format_bare(problem):
    lines = ["Traceback (most recent call last):\n"]
    entry = problem.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        lines.append('  File "%s", line %d, in %s\n' % (code.co_filename, entry.tb_lineno, code.co_name))
        entry = entry.tb_next
    said = describe(problem)
    lines.append("%s: %s\n" % (said["type"], said["message"]))
    return lines


def _write_error(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:  # user code put something of its own there
        try:
            write(2, text.encode("utf-8", "backslashreplace"))
        except OSError:  # or has closed it: the run has no stderr, and an `error` still
            pass


def _call_hook(kernel, hook, problem):
    try:
        hook(type(problem), problem, problem.__traceback__)
    except SystemExit:
        pass
    except Exception as second:
        strip(second)
        second.__context__ = None
        _write_error("Error in sys.excepthook:\n")
        show(kernel, second)
        _write_error("\nOriginal exception was:\n")
        show(kernel, problem)


def strip(problem):
    """Removes the driver's frames from an exception and all that it leads to."""
    todo, seen = [problem], set()
    while todo:
        problem = todo.pop()
        if problem is None or id(problem) in seen:
            continue
        seen.add(id(problem))
        problem.__traceback__ = _without_ours(problem.__traceback__)
        todo += [problem.__cause__, problem.__context__]
        inner = getattr(problem, "exceptions", None)
        if type(inner) is tuple:
            todo += [item for item in inner if isinstance(item, BaseException)]


def _without_ours(traceback):
    kept = []
    while traceback is not None:
        if not load.is_ours(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    following = None
    for entry in reversed(kept):
        if entry.tb_next is not following:
            entry.tb_next = following
        following = entry
    return following
