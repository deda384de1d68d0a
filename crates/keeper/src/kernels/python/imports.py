"""Finds the modules that user code imported.

They are read from the syntax of each run, then confirmed by what the run left behind: a
name that was bound, or a module that was not loaded before. builtins.__import__ is left
alone: a replacement would be visible, and slow down every import of every library.

Limits: `importlib.import_module("x")` is not seen; an import inside a function is seen
if it loads the module, not if something else had loaded it before.
"""
import _ast

DEFERRED = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.Lambda)


class _Candidate:
    """`names` are pairs of a name in __main__ and the attribute it came from."""

    __slots__ = ("module", "names", "is_certain", "was_loaded")

    def __init__(self, module, names, is_certain, was_loaded):
        self.module, self.names = module, names
        self.is_certain, self.was_loaded = is_certain, was_loaded


class Imports:
    def __init__(self, kernel):
        self._modules = kernel.modules
        self._space = kernel.space
        self._found = {}
        self._of_run = []
        self._deferred = {}

    def names(self):
        self._confirm_deferred()
        return list(self._found)

    def add(self, module):
        """Adds a module that is known to have been imported."""
        self._found[module] = True

    def foresee(self, tree):
        """Records, before the run, what is loaded: later this cannot be determined."""
        self._of_run = []
        for statement in tree.body:
            self._visit(statement, True, False)

    def _visit(self, node, is_certain, is_deferred):
        kind = type(node)
        if kind is _ast.Import:
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                origin = alias.name if alias.asname else bound
                self._add(alias.name, [(bound, origin, None)], is_certain, is_deferred)
        elif kind is _ast.ImportFrom:
            if node.module and not node.level:
                names = [(a.asname or a.name, node.module, a.name) for a in node.names]
                self._add(node.module, names, is_certain, is_deferred)
        else:
            is_deferred = is_deferred or kind in DEFERRED
            for field in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(node, field, None)
                if type(inner) is list:
                    for child in inner:
                        self._visit(child, False, is_deferred)

    def _add(self, module, names, is_certain, is_deferred):
        if module in self._found:
            return
        was_loaded = module in self._modules
        if is_deferred:
            if not was_loaded:
                self._deferred[module] = True
            return
        self._of_run.append(_Candidate(module, names, is_certain, was_loaded))

    def confirm(self, has_succeeded):
        for candidate in self._of_run:
            if candidate.module not in self._modules:
                continue
            if (has_succeeded and candidate.is_certain) or not candidate.was_loaded \
                    or self._is_bound(candidate):
                self._found[candidate.module] = True
        self._of_run = []
        if self._deferred:
            self._confirm_deferred()

    def _is_bound(self, candidate):
        for bound, origin, attribute in candidate.names:
            value = self._space.get(bound)
            module = self._modules.get(origin)
            if value is None or module is None:
                continue
            if attribute is None:
                if value is module:
                    return True
            elif value is getattr(module, "__dict__", {}).get(attribute, module):
                return True
        return False

    def _confirm_deferred(self):
        for module in list(self._deferred):
            if module in self._modules:
                del self._deferred[module]
                self._found[module] = True
