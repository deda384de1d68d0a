"""Values as bytes, and back: pickle, and what pickle cannot do by itself.

Typed functions and classes are stored by their source (see `defined`), cells of
closures and modules by what they are. Everything that is defined here and called when
bytes become values again is found under `MODULE`, which is in sys.modules only while
values are pickled, in a process that does nothing else.

Must not: execute a decorator or a default value of a function again. Only the statement
of a class is executed when it is loaded.
"""
sys = load.sys
defined = load("defined")

MODULE = "sessile_pickled"
PROTOCOL = 5
FunctionType = type(lambda: 0)
ModuleType = type(sys)
CellType = type((lambda x: lambda: x)(0).__closure__[0])
# Types whose values can be duplicated without a visible difference.
VALUES = {str, bytes, int, float, complex, bool, type(None), range, tuple, type(Ellipsis),
          type(NotImplemented), type(len), ModuleType}
PLAIN = {str, bytes, int, float, complex, bool, type(None)}

_loading = None  # the Loader at work, for the functions that pickles call


class Unknown(Exception):
    """Typed code whose source is not known."""


def pickler_class(kernel, library, base, is_able=False):
    """Returns a pickler on top of `base`, which is pickle's own, or one that can carry
    code whose source is not known."""
    space = kernel.space
    fallback = getattr(base, "reducer_override", None)
    lru_cache = type(kernel.import_standard("functools").lru_cache(lambda: 0))
    type_variable = getattr(kernel.modules.get("typing"), "TypeVar", None)
    environ_type = type(kernel.environ)
    # Libraries silently turn it into something else.
    file_type = kernel.import_standard("_io").TextIOWrapper

    class Carrier(base):
        probing = ()

        def reducer_override(self, value):
            kind = type(value)
            reduced = NotImplemented
            if kind is FunctionType:
                reduced = self._function(value)
            elif kind is CellType:
                reduced = (make_cell, (), _contents(value), None, None, fill_cell)
            elif kind is ModuleType:
                reduced = self._module(value)
            elif kind is lru_cache:
                reduced = (make_cached, _cache_parameters(value) + (value.__wrapped__,))
            elif kind is environ_type and value is kernel.environ:
                reduced = (environment, ())
            elif kind is file_type:
                raise TypeError("cannot pickle '_io.TextIOWrapper' object")
            elif issubclass(kind, type):
                if value.__module__ == "__main__":
                    reduced = self._class(value)
            elif kind is type_variable and value.__module__ == "__main__":
                reduced = (make_type_variable, (value.__name__, value.__constraints__, value.__bound__,
                                                value.__covariant__, value.__contravariant__))
            if reduced is NotImplemented and fallback is not None:
                return fallback(self, value)
            return reduced

        def _function(self, function):
            code, module = function.__code__, function.__module__
            is_own = function.__globals__ is space
            if not is_own and module not in (None, "__main__"):
                return function.__name__ if module == MODULE else NotImplemented
            # Otherwise pickle would treat them as something that every session has.
            place = library.place_of(code) if is_own else None
            if place is None and not is_able:
                raise Unknown("the source of %s is not known" % function.__qualname__)
            if not is_own:
                return NotImplemented
            state = (function.__name__, function.__qualname__, function.__module__, function.__doc__,
                     function.__defaults__, function.__kwdefaults__, function.__dict__,
                     function.__annotations__)
            names = code.co_freevars
            made = (make_function, (place, names, function.__closure__))
            if place is None:  # a library would give it variables of its own
                made = (make_function_of, (code, function.__closure__))
            return made + (state, None, None, dress_function)

        def _module(self, module):
            name = module.__name__
            if kernel.modules.get(name) is module:
                return (import_again, (name,))
            if fallback is not None:  # dill would only take note of its name
                return NotImplemented
            raise Unknown("the module %s was not imported" % name)

        def _class(self, cls):
            outer, _, name = cls.__qualname__.rpartition(".")
            if outer and "<locals>" not in outer:
                found = _follow(space, outer)
                if found is not None and found.__dict__.get(name) is cls:
                    return (getattr, (found, name))
            if "<locals>" not in cls.__qualname__:
                statement = library.statement_of(cls, _functions_in(cls))
                if statement is not None:
                    return self._typed_class(cls, statement)
            if cls.__bases__ == (tuple,) and "_fields" in cls.__dict__:
                defaults = tuple(cls._field_defaults.values())
                return (make_named_tuple, (cls.__name__, cls._fields, defaults))
            if is_able:
                return NotImplemented
            raise Unknown("the source of class %s is not known" % cls.__qualname__)

        def _typed_class(self, cls, statement):
            code, node = library.class_code(statement)
            needs = {}
            for name in sorted(defined.names_read(code)):
                if name in space and name != node.name and name[:2] != "__":
                    needs[name] = space[name]
            lines = range(defined.first_line(node), node.end_lineno + 1)
            state = self._attributes(cls, statement[0], lines)
            return (define_class, (statement, needs), state, None, None, dress_class)

        def _attributes(self, cls, run, lines):
            """Returns what a class has beyond its statement, or may have changed since."""
            found = {}
            if hasattr(cls, "__members__"):  # an Enum
                return found
            for name, value in list(cls.__dict__.items()):
                if name[:2] == name[-2:] == "__" or name == "_abc_impl":
                    continue
                if type(value) is FunctionType:
                    code = value.__code__
                    if code.co_filename == run and code.co_firstlineno in lines:
                        continue
                elif hasattr(type(value), "__get__"):
                    continue
                if type(value) in PLAIN or self._can_carry(value):
                    found[name] = value
            return found

        def _can_carry(self, value):
            if id(value) in self.probing:
                return True
            try:
                probe = Carrier(_Nowhere(), PROTOCOL)
                probe.probing = self.probing + (id(value),)
                probe.dump(value)
            except Exception:
                return False
            return True

    return Carrier


class _Nowhere:
    def write(self, data):
        return len(data)


def _contents(cell):
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty
        return ()


def _cache_parameters(cached):
    if hasattr(cached, "cache_parameters"):
        found = cached.cache_parameters()
        return found["maxsize"], found["typed"]
    return cached.cache_info().maxsize, False


def _follow(space, path):
    first, *rest = path.split(".")
    found = space.get(first)
    for name in rest:
        found = getattr(found, "__dict__", {}).get(name)
    return found if isinstance(found, type) else None


def _functions_in(cls):
    for member in list(cls.__dict__.values()):
        for function in (member, getattr(member, "__func__", None), getattr(member, "fget", None)):
            if type(function) is FunctionType:
                yield function


def is_shared(value, space):
    """Whether it matters that two names refer to the same object."""
    kind = type(value)
    if kind in VALUES:
        return False
    if kind is FunctionType:
        return value.__globals__ is space
    if issubclass(kind, type):
        return value.__module__ == "__main__"
    return True


# What pickles call.

class Loader:
    """Creates values from bytes. One loader for all bytes of a dump: a class that
    several of them mention is created once."""

    def __init__(self, kernel, library):
        self.kernel, self.library = kernel, library
        self.classes = {}

    def values(self, data, base):
        global _loading
        part = globals()

        class Unpickler(base):
            def find_class(self, module, name):
                if module == MODULE:
                    return part[name]
                try:
                    return base.find_class(self, module, name)
                except ModuleNotFoundError:
                    # Newer versions of Python have some in a private submodule.
                    outer, _, inner = module.rpartition(".")
                    if not outer or inner[:1] != "_":
                        raise
                    return base.find_class(self, outer, name)

        io = self.kernel.import_standard("_io")
        _loading = self
        try:
            return Unpickler(io.BytesIO(data)).load()
        finally:
            _loading = None


def make_function(place, names, closure):
    code = _loading.library.code_at(place)
    if closure is not None:
        cells = dict(zip(names, closure))
        closure = tuple([cells[name] for name in code.co_freevars])
    return FunctionType(code, _loading.kernel.space, code.co_name, None, closure)


def make_function_of(code, closure):
    return FunctionType(code, _loading.kernel.space, code.co_name, None, closure)


def dress_function(function, state):
    (function.__name__, function.__qualname__, function.__module__, function.__doc__,
     function.__defaults__, function.__kwdefaults__, more, function.__annotations__) = state
    function.__dict__.update(more)


def make_cell():
    return CellType()


def fill_cell(cell, contents):
    if contents:
        cell.cell_contents = contents[0]


def import_again(name):
    __import__(name)
    return _loading.kernel.modules[name]


def make_cached(maxsize, typed, function):
    return _loading.kernel.import_standard("functools").lru_cache(maxsize, typed)(function)


def environment():
    return _loading.kernel.environ


def make_type_variable(name, constraints, bound, covariant, contravariant):
    typing = _loading.kernel.import_standard("typing")
    made = typing.TypeVar(name, *constraints, bound=bound, covariant=covariant, contravariant=contravariant)
    made.__module__ = "__main__"
    return made


def make_named_tuple(name, fields, defaults):
    key = (name, fields)
    if key not in _loading.classes:
        collections = _loading.kernel.import_standard("collections")
        made = collections.namedtuple(name, fields, defaults=defaults, module="__main__")
        _loading.classes[key] = made
    return _loading.classes[key]


def define_class(statement, needs):
    loading = _loading
    made = loading.classes.get(statement)
    if made is None:
        code, node = loading.library.class_code(statement)
        space = loading.kernel.space
        for name, value in needs.items():
            space.setdefault(name, value)
        missing = object()
        before = space.get(node.name, missing)
        exec(code, space)
        made = loading.classes[statement] = space[node.name]
        if before is missing:
            del space[node.name]
        else:
            space[node.name] = before
    return made


def dress_class(cls, attributes):
    for name, value in attributes.items():
        type.__setattr__(cls, name, value)
