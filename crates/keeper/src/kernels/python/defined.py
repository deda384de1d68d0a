"""Typed functions and classes, found again in the texts of their runs.

A function is identified by its place: the run, its name, its line, and which one of
several it is. Whoever has the text compiles it and gets the function's code, in any
version of Python, without executing anything of the run. A class is identified by its
statement, which has to be executed.

Invariant: a place is only returned for code that is equal to what the text compiles to;
a text that was lost or is not the right one yields none.
"""
import _ast

source = load("source")

FunctionType = type(lambda: 0)
CodeType = source.CodeType
OPTIMIZED = 0x01
BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


class Library:
    def __init__(self, kernel, texts):
        self._kernel = kernel
        self.texts = texts
        self.used = {}  # the texts that something refers to
        self._programs = {}
        self._codes = {}

    def place_of(self, code):
        """Returns where a code object comes from, as plain values; None if it is not
        known."""
        name = code.co_filename
        if name not in self.texts:
            return None
        features = self.features(code.co_flags)
        for ordinal, found in enumerate(self._alike(name, code.co_name, code.co_firstlineno, features)):
            if found == code:
                self.used[name] = self.texts[name]
                return (name, code.co_name, code.co_firstlineno, ordinal, features)
        return None

    def code_at(self, place):
        name, function, line, ordinal, features = place
        return self._alike(name, function, line, features)[ordinal]

    def _alike(self, name, function, line, features):
        key = (name, features)
        codes = self._codes.get(key)
        if codes is None:
            program = self._program(name, features)
            codes = []
            for code in (program.body, program.last):
                if code is not None:
                    _collect(code, codes)
            self._codes[key] = codes
        return [code for code in codes if code.co_name == function and code.co_firstlineno == line]

    def _program(self, name, features):
        key = (name, features)
        program = self._programs.get(key)
        if program is None:
            text = self.texts[name]
            compiler = source.Compiler()
            compiler._flags |= self.flags(features)
            try:
                program = compiler.compile(text, name)
            except SyntaxError as refused:
                program = load("habits").compile(self._kernel, text, name, refused, [])
                if program is None:
                    raise
            self._programs[key] = program
        return program

    # `from __future__ import …`: by name, because the bits differ between versions.

    def features(self, flags):
        future = self._kernel.import_standard("__future__")
        return tuple([name for name in future.all_feature_names
                      if flags & getattr(future, name).compiler_flag & ~0xFFFF])

    def flags(self, features):
        future = self._kernel.import_standard("__future__")
        flags = 0
        for name in features:
            if name in future.all_feature_names:
                flags |= getattr(future, name).compiler_flag & ~0xFFFF
        return flags

    # Classes.

    def statement_of(self, cls, members):
        """Returns the place of a class's statement; None if it is not known."""
        name = cls.__name__
        for function in members:
            code = function.__code__
            if code.co_filename in self.texts and function.__qualname__.startswith(cls.__qualname__ + "."):
                features = self.features(code.co_flags)
                node = self._class_at(code.co_filename, name, code.co_firstlineno, features)
                if node is not None:
                    return self._statement(code.co_filename, node, features)
        features = self.features(self._kernel.compiler._flags)
        for run in reversed(list(self.texts)):
            if name in self.texts[run]:
                node = self._class_at(run, name, None, features)
                if node is not None:
                    return self._statement(run, node, features)
        return None

    def _statement(self, run, node, features):
        self.used[run] = self.texts[run]
        return (run, node.name, node.lineno, features)

    def _class_at(self, run, name, line, features):
        """Returns the class statement of this name around a line, or the last one."""
        try:
            tree = self._program(run, features).tree
        except SyntaxError:
            return None
        found = None
        for node in _statements(tree.body if tree is not None else []):
            if type(node) is _ast.ClassDef and node.name == name:
                if line is None or first_line(node) <= line <= node.end_lineno:
                    found = node
        return found

    def class_code(self, statement):
        run, name, line, features = statement
        for node in _statements(self._program(run, features).tree.body):
            if type(node) is _ast.ClassDef and node.name == name and node.lineno == line:
                flags = self.flags(features)
                return compile(_ast.Module([node], []), run, "exec", flags, True), node
        raise LookupError("the statement of class %s is missing" % name)


def _collect(code, into):
    for constant in code.co_consts:
        if type(constant) is CodeType:
            into.append(constant)
            _collect(constant, into)


def _statements(body):
    """Yields all statements that are executed with the run itself."""
    for node in body:
        yield node
        if type(node) not in (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef):
            for field in BLOCKS:
                inner = getattr(node, field, None)
                if type(inner) is list:
                    yield from _statements(inner)


def first_line(node):
    return min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])


def names_read(code):
    """Returns the names that executing a class statement looks up, without those of its
    methods."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if type(constant) is CodeType:
            is_body = not constant.co_flags & OPTIMIZED
            is_inline = constant.co_name[:1] == "<" and constant.co_name != "<lambda>"
            if is_body or is_inline:
                names |= names_read(constant)
    return names
