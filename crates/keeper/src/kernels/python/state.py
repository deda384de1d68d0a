"""Describes the kernel's state without touching it.

Invariant: no user code runs. Types are queried through `type`, never through the
object; only values whose type is a known one in C are printed, to a bounded depth and
length; everything else is named by its type.
"""
sys = load.sys
channel = load("channel")

MOST_TEXT = 120
MOST_DEPTH = 3
MOST_ITEMS = 8
# An int with more bits takes long to print, or may not be printed at all.
MOST_BITS = 512
FunctionType = type(lambda: 0)
ModuleType = type(sys)
NUMBERS = (bool, float, complex, type(None), type(Ellipsis), type(NotImplemented), range)
BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})")}
# Types of the standard library whose repr is C code, or one line over strings.
PRINTABLE = {("datetime", "date"), ("datetime", "time"), ("datetime", "datetime"),
             ("datetime", "timedelta"), ("decimal", "Decimal"), ("fractions", "Fraction"),
             ("pathlib", "PosixPath"), ("pathlib._local", "PosixPath"),
             ("pathlib", "PurePosixPath"), ("uuid", "UUID")}

# The getters of `type` itself: the user's metaclass cannot answer for them.
_module_of_type = type.__dict__["__module__"].__get__
_bases_of_type = type.__dict__["__bases__"].__get__
_name_of_type = type.__dict__["__name__"].__get__


def report(kernel):
    variables, functions, classes = [], [], []
    for name, value in list(kernel.space.items()):
        if type(name) is not str or name.startswith("_"):
            continue
        kind = type(value)
        if kind is ModuleType:
            continue
        function = _function_behind(value)
        if function is not None:
            if function.__globals__ is kernel.space:
                functions.append({"name": name, "signature": name + signature(function)})
        elif issubclass(kind, type):
            if _module_of(value) == "__main__":
                classes.append({"name": name, "bases": _bases(value)})
        elif kind is not type(len):
            variables.append({"name": name, "type": _name_of_type(kind), "repr": short(value)})
    return {"op": "state", "working_dir": _working_directory(), "variables": variables,
            "functions": functions, "classes": classes,
            "imports": kernel.imports.names() if kernel.imports is not None else [],
            "env_vars": _environment(kernel.environ), "threads": _threads(kernel.modules)}


def _working_directory():
    try:
        return channel.getcwd()
    except OSError:
        return None


def _environment(environ):
    return {key: value for key, value in environ.items()}


def _threads(modules):
    threading = modules.get("threading")
    if threading is None:
        return []
    names = []
    for thread in list(getattr(threading, "_active", {}).values()):
        name = object.__getattribute__(thread, "__dict__").get("_name")
        if type(name) is str and type(thread) is not threading._MainThread:
            names.append(name)
    return names


def _function_behind(value):
    """Returns the function itself, or what functools.lru_cache wraps."""
    kind = type(value)
    if kind is FunctionType:
        return value
    if _name_of_type(kind) == "_lru_cache_wrapper" and _module_of(kind) == "functools":
        inner = value.__dict__.get("__wrapped__")
        return inner if type(inner) is FunctionType else None
    return None


def signature(function):
    for _ in range(MOST_ITEMS):
        inner = function.__dict__.get("__wrapped__")
        if type(inner) is not FunctionType:
            break
        function = inner
    code = function.__code__
    names = code.co_varnames
    positional, only = code.co_argcount, code.co_kwonlyargcount
    defaults = function.__defaults__ or ()
    keyword_defaults = function.__kwdefaults__ or {}
    parts = []
    for index in range(positional):
        given = index - (positional - len(defaults))
        parts.append(names[index] + ("=" + short(defaults[given]) if given >= 0 else ""))
        if index + 1 == code.co_posonlyargcount:
            parts.append("/")
    following = positional + only
    if code.co_flags & 0x04:
        parts.append("*" + names[following])
        following += 1
    elif only:
        parts.append("*")
    for name in names[positional:positional + only]:
        parts.append(name + ("=" + short(keyword_defaults[name]) if name in keyword_defaults else ""))
    if code.co_flags & 0x08:
        parts.append("**" + names[following])
    return "(" + ", ".join(parts) + ")"


def _bases(cls):
    return [_name_of_type(base) for base in _bases_of_type(cls) if base is not object]


def _module_of(cls):
    module = _module_of_type(cls)
    return module if type(module) is str else ""


def _full_name(cls):
    module = _module_of(cls)
    name = _name_of_type(cls)
    return name if module in ("builtins", "") else module + "." + name


def short(value):
    try:
        text = _short(value, MOST_DEPTH)
    except Exception:  # changed by a thread while we looked
        text = "<%s object>" % _full_name(type(value))
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT - 1] + "\u2026"


def _short(value, depth):
    kind = type(value)
    if kind is int:
        return repr(value) if value.bit_length() <= MOST_BITS else "<int of %d bits>" % value.bit_length()
    if kind is str or kind is bytes or kind is bytearray:
        cut = repr(value[:MOST_TEXT])
        return cut if len(value) <= MOST_TEXT else cut[:-1] + "\u2026" + cut[-1]
    if kind in NUMBERS:
        return repr(value)
    if kind in BRACKETS:
        return _short_items(value, kind, depth)
    if kind is dict:
        return _short_dict(value, depth)
    if issubclass(kind, type):
        return "<class '%s'>" % _full_name(value)
    if kind is FunctionType:
        return "<function %s>" % value.__name__
    if kind is ModuleType:
        return "<module %s>" % value.__dict__.get("__name__")
    return _short_known(value, kind)


def _short_items(value, kind, depth):
    opening, closing = BRACKETS[kind]
    size = len(value)
    if not size:
        return "set()" if kind is set else "frozenset()" if kind is frozenset else opening + closing
    if depth == 0:
        return opening + "\u2026" + closing
    parts = [_short(item, depth - 1) for item in _first(value)]
    if size > MOST_ITEMS:
        parts.append("\u2026 %d in all" % size)
    elif kind is tuple and size == 1:
        parts.append("")
    return opening + ", ".join(parts).rstrip(" ") + closing


def _short_dict(value, depth):
    if not value:
        return "{}"
    if depth == 0:
        return "{\u2026}"
    parts = [_short(key, depth - 1) + ": " + _short(item, depth - 1)
             for key, item in _first(value.items())]
    if len(value) > MOST_ITEMS:
        parts.append("\u2026 %d in all" % len(value))
    return "{" + ", ".join(parts) + "}"


def _first(items):
    taken = []
    for item in items:
        taken.append(item)
        if len(taken) == MOST_ITEMS:
            break
    return taken


def _short_known(value, kind):
    module, name = _module_of(kind), _name_of_type(kind)
    root = module.partition(".")[0]
    if (module, name) in PRINTABLE and _is_genuine(kind, module, name):
        if name in ("datetime", "time") and value.tzinfo is not None:
            return "<%s.%s object>" % (module, name)
        return repr(value)
    if root == "numpy" and name == "ndarray" and _is_genuine(kind, "numpy", name):
        return "<numpy.ndarray %s %s>" % (value.dtype.str, value.shape)
    if root == "pandas" and name in ("DataFrame", "Series") and _is_genuine(kind, "pandas", name):
        return "<pandas.%s %s>" % (name, value.shape)
    return "<%s object>" % _full_name(kind)


def _is_genuine(kind, module, name):
    """Whether a class is the library's own: a user's class may have any name."""
    found = sys.modules.get(module)
    return getattr(found, "__dict__", {}).get(name) is kind
