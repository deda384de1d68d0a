"""Restores what a run has changed in the driver itself.

User code finds our frames (`sys._getframe`), and through them our modules, classes and
functions; it could replace what reports later runs. So the contents of a part are
recorded when it is loaded, in tuples, which cannot be changed, and compared after a
run, when no client waits for us (`kernel.loop` says how often).

Invariant: `is_whole` and `mend` look up nothing that user code can change. Their caller
is a frame that never ends; it creates them from their code each time, and passes them
all that they need.

Must not: compare what may be an object of the user by anything but identity, as it may
claim to be equal to ours.
"""
from _operator import attrgetter, is_, itemgetter
from gc import get_referents

TOOLS = (all, map, tuple, len, is_, get_referents, attrgetter("__code__"))
MENDING = (len, range, setattr, delattr)
FUNCTION = type(lambda: None)
KEPT_BY_CLASS = ("__dict__", "__weakref__", "__doc__", "__module__")


def seal(space):
    """Returns the contents of the part with these globals."""
    functions, classes = [], []
    for value in space.values():
        if type(value) is FUNCTION and value.__globals__ is space:
            functions.append(value)
        elif isinstance(value, type) and value.__module__ == space["__name__"]:
            classes.append(_seal_class(value))
            functions += _functions_of(value)
    codes = tuple([function.__code__ for function in functions])
    defaults = tuple([function.__defaults__ for function in functions])
    return (space, tuple(space), tuple(space.values()), tuple(functions), codes, defaults, tuple(classes))


def _seal_class(made):
    names = tuple([name for name in made.__dict__ if name not in KEPT_BY_CLASS])
    own = tuple([made.__dict__[name] for name in names])
    return (made, tuple(made.__dict__), tuple(made.__dict__.values()), names, own)


def _functions_of(made):
    found = []
    for value in made.__dict__.values():
        function = value.fget if type(value) is property else value
        if type(function) is FUNCTION:
            found.append(function)
    return found


def seal_objects(kernel):
    """Returns what holds the driver together: (object, attributes, values)."""
    bonds = ((kernel, ("main", "space", "modules", "environ", "sources", "compiler", "streams", "channel", "null",
                       "reserve", "on_sigint")),
             (kernel.channel, ("code", "stdout", "stderr", "_ctl", "_rep", "_seal")))
    return tuple([(owner, names, attrgetter(*names), attrgetter(*names)(owner)) for owner, names in bonds])


def outline(seals):
    """Returns all of it in a form that Python compares in a few steps.

    Of the builtins, which have no functions of ours, only those are compared that the
    code of loaded parts uses: builtins are most of all values. Before another part is
    loaded, all of them are restored (see `boot`).
    """
    spaces, sizes, values, functions, codes, builtins = [], [], [], [], [], []
    for space, own_names, own_values, own_functions, own_codes, _, classes in seals:
        if not own_functions:
            builtins.append((space, dict(zip(own_names, own_values))))
            continue
        spaces.append(space)
        values += own_values
        functions += own_functions
        codes += own_codes
        sizes.append(len(own_values))
        for made, _, all_values, _, _ in classes:
            spaces.append(_dictionary_of(made))
            values += all_values
            sizes.append(len(all_values))
    used = _names_in(codes)
    items = []
    for space, known in builtins:
        get = itemgetter(*[name for name in known if name in used])
        items.append((space, get, get(known)))
    return tuple(spaces), tuple(sizes), tuple(values), tuple(functions), tuple(codes), tuple(items)


def _dictionary_of(made):
    """Returns a class's dictionary: the class shows a view of it, through which
    `get_referents` does not look."""
    return [found for found in get_referents(made.__dict__) if type(found) is dict][0]


def _names_in(codes):
    """Returns the names that code looks up, and those that the interpreter looks up for
    it."""
    used = {"__build_class__", "__import__", "getattr", "iter", "reversed"}
    codes = [*codes]
    while codes:
        code = codes.pop()
        used.update(code.co_names)
        codes += [constant for constant in code.co_consts if type(constant) is type(code)]
    return used


def is_whole(outline, bonds, tools):
    spaces, sizes, values, functions, codes, builtins = outline
    all, map, tuple, len, is_same, values_of, code_of = tools
    try:
        # The values of all dictionaries in one list, in half of the time that
        # `values()` takes. In order, and without the keys, which are text.
        if tuple(map(len, spaces)) != sizes or not all(map(is_same, values_of(*spaces), values)):
            return False
        # Only code can be a function's code: no object of the user claims to be equal
        # here, and equal code does the same.
        if tuple(map(code_of, functions)) != codes:
            return False
        for space, get, expected in builtins:
            if not all(map(is_same, get(space), expected)):
                return False
        for owner, _, get, expected in bonds:
            if not all(map(is_same, get(owner), expected)):
                return False
    except:  # something is gone
        return False
    return True


def mend(seals, bonds, len, range, setattr, delattr):
    for space, names, values, functions, codes, defaults, classes in seals:
        space.clear()
        for at in range(len(names)):
            space[names[at]] = values[at]
        for at in range(len(functions)):
            functions[at].__code__ = codes[at]
            functions[at].__defaults__ = defaults[at]
        for made, all_names, _, own_names, own_values in classes:
            for name in [*made.__dict__]:
                if name not in all_names:
                    delattr(made, name)
            for at in range(len(own_names)):
                setattr(made, own_names[at], own_values[at])
    for owner, names, _, values in bonds:
        for at in range(len(names)):
            setattr(owner, names[at], values[at])
