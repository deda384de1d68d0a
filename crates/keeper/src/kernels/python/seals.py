"""Puts back what a run has changed of the driver itself.

User code finds our frames (`sys._getframe`), and through them our modules, classes
and functions; it could exchange what reports later runs. So what a part consists
of is written down when it is loaded, in tuples, which cannot be changed, and
compared after each run, when nobody waits for us.

Invariant: `is_whole` and `mend` look nothing up that user code can change. Their
caller is a frame that never ends, makes them anew from their code each time, and
hands them all that they need.

Must not: compare by anything but identity, as an object of the user's may claim to
be equal to ours.
"""
from _operator import attrgetter, is_, methodcaller
from itertools import chain

TOOLS = (all, map, tuple, len, getattr, is_, chain.from_iterable, methodcaller("values"), attrgetter("__code__"))
MENDING = (len, range, setattr, delattr)
FUNCTION = type(lambda: None)
KEPT_BY_CLASS = ("__dict__", "__weakref__", "__doc__", "__module__")


def seal(space):
    """What the part with these globals consists of."""
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
    """What holds the driver together: (object, attribute, value)."""
    bonds = [(kernel, name) for name in ("main", "space", "modules", "environ", "sources", "compiler", "streams",
                                         "channel", "null", "reserve", "on_sigint")]
    bonds += [(kernel.channel, name) for name in ("_ctl", "_rep", "_seal")]
    return tuple([(owner, name, getattr(owner, name)) for owner, name in bonds])


def outline(seals):
    """All of it in a form that is compared without a step of Python's own, which takes
    less than half the time of a loop."""
    spaces, sizes, values, functions, codes = [], [], [], [], []
    for space, _, own_values, own_functions, own_codes, _, classes in seals:
        spaces.append(space)
        values += own_values
        functions += own_functions
        codes += own_codes
        sizes.append(len(own_values))
        for made, _, all_values, _, _ in classes:
            spaces.append(made.__dict__)
            values += all_values
            sizes.append(len(all_values))
    return tuple(spaces), tuple(sizes), tuple(values), tuple(functions), tuple(codes)


def is_whole(outline, bonds, tools):
    spaces, sizes, values, functions, codes = outline
    all, map, tuple, len, getattr, is_same, chain, values_of, code_of = tools
    if not all(map(is_same, chain(map(values_of, spaces)), values)):
        return False
    if tuple(map(len, spaces)) != sizes or not all(map(is_same, map(code_of, functions), codes)):
        return False
    for owner, name, value in bonds:
        if getattr(owner, name, None) is not value:
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
    for owner, name, value in bonds:
        setattr(owner, name, value)
