"""From the text of a run to code objects, and the lines that tracebacks show.

Invariants: the lines of a run are in linecache while it runs, and stay as long
as something defined in it can be asked for its source; a run that defined
nothing leaves nothing behind (a session may have a million of them).
"""
import sys
from _ast import Expr, Expression, Module

PARSE_ONLY = 0x400
TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80
# Enough for any session by hand or by agent; older sources are dropped first.
MOST_RUNS = 4096
MOST_CHARACTERS = 16 << 20
# Calls that need a running loop: as in a notebook they work without an await.
NEEDS_LOOP = {"create_task", "ensure_future", "get_running_loop"}
RUNS_LOOP = {"run", "run_until_complete", "run_forever"}

CodeType = type((lambda: 0).__code__)


class Program:
    """A run's code: statements, then the last expression; either may be None."""

    __slots__ = ("body", "last", "tree", "is_async", "defines")

    def __init__(self, body, last, tree):
        self.body, self.last, self.tree = body, last, tree
        self.is_async = self.defines = False
        if body is not None:
            self._look_into(body)
        if last is not None:
            self._look_into(last)

    def _look_into(self, code):
        if code.co_flags & COROUTINE:
            self.is_async = True
        elif code.co_names and not NEEDS_LOOP.isdisjoint(code.co_names):
            self.is_async = self.is_async or RUNS_LOOP.isdisjoint(code.co_names)
        for constant in code.co_consts:
            if type(constant) is CodeType:
                self.defines = True


class Compiler:
    def __init__(self):
        # `from __future__ import …` holds for later runs too, as when typed.
        self._flags = TOP_LEVEL_AWAIT

    def compile(self, text, name):
        try:
            tree = compile(text, name, "exec", self._flags | PARSE_ONLY, True)
            return self._split(text, name, tree)
        except (RecursionError, MemoryError):
            # Nested too deeply for a tree of objects; the plain compiler goes further.
            return Program(compile(text, name, "exec", self._flags, True), None, None)

    def _split(self, text, name, tree):
        statements = tree.body
        if not statements or type(statements[-1]) is not Expr:
            return Program(self._compile_statements(text, name, tree), None, tree)
        final = statements.pop()
        body = self._compile_statements(text, name, tree) if statements else None
        statements.append(final)
        if _is_silenced(text, final):
            last = compile(Module([final], []), name, "exec", self._flags, True)
        else:
            last = compile(Expression(final.value), name, "eval", self._flags, True)
        return Program(body, last, tree)

    def _compile_statements(self, text, name, tree):
        code = compile(tree, name, "exec", self._flags, True)
        if "__future__" in text:
            self._keep_features(code)
        return code

    def _keep_features(self, code):
        import __future__
        for feature in __future__.all_feature_names:
            self._flags |= code.co_flags & getattr(__future__, feature).compiler_flag


def _is_silenced(text, final):
    """Whether a closing semicolon suppresses the value, as in a notebook."""
    if not text.rstrip().endswith(";"):
        return False
    lines = text.split("\n")[final.end_lineno - 1:]
    lines[0] = lines[0].encode()[final.end_col_offset:].decode()
    return lines[0].lstrip(" )").startswith(";")


class Sources:
    def __init__(self):
        self._texts = {}
        self._size = 0
        self._linecache = None

    def open(self, name, text):
        if self._linecache is None:
            self._linecache = sys.modules.get("linecache")
            if self._linecache is None:
                return
            self._publish_all()
        cache = self._linecache.cache
        if self._texts and next(reversed(self._texts)) not in cache:
            self._publish_all()
        cache[name] = _entry(name, text)

    def attach(self, linecache):
        if self._linecache is not linecache:
            self._linecache = linecache
            self._publish_all()

    def publish(self, name, text):
        self._linecache.cache[name] = _entry(name, text)

    def _publish_all(self):
        for name, text in self._texts.items():
            self.publish(name, text)

    def keep(self, name, text):
        self._texts[name] = text
        self._size += len(text)
        while len(self._texts) > MOST_RUNS or self._size > MOST_CHARACTERS:
            oldest = next(iter(self._texts))
            self._size -= len(self._texts.pop(oldest))
            self.drop(oldest)

    def drop(self, name):
        if self._linecache is not None:
            self._linecache.cache.pop(name, None)

    def newest_first(self):
        return reversed(list(self._texts.items()))


def _entry(name, text):
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line + "\n" for line in text.split("\n")]
    return (len(text), None, lines, name)
