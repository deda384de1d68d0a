"""The examples in docstrings, run: those of sync classes as they are, those of async ones in
an event loop."""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib
import inspect
import pkgutil
from typing import Any, Dict, List

import pytest

import sessile

NAMES = {name: getattr(sessile, name) for name in sessile.__all__}
FLAGS = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS


def modules() -> List[str]:
    found = pkgutil.walk_packages(sessile.__path__, "sessile.")
    skipped = ("sessile.tools.", "sessile.magic")
    return ["sessile", *(module.name for module in found if not module.name.startswith(skipped))]


def examples(name: str) -> List[doctest.DocTest]:
    module = importlib.import_module(name)
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name)
    return [test for test in found if test.examples]


def named(test: doctest.DocTest) -> Any:
    return pytest.param(test, id=test.name)


SYNC = [named(test) for name in modules() if "._async" not in name for test in examples(name)]
ASYNC = [named(test) for name in modules() if "._async" in name for test in examples(name)]


@pytest.mark.parametrize("test", SYNC)
def test_sync_example(test: doctest.DocTest) -> None:
    with sessile.Session() as session:
        test.globs.update(NAMES, session=session, client=session.client)
        outcome = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
    assert outcome.failed == 0 and outcome.attempted > 0


@pytest.mark.parametrize("test", ASYNC)
def test_async_example(test: doctest.DocTest) -> None:
    asyncio.run(run_async(test))


async def run_async(test: doctest.DocTest) -> None:
    async with sessile.AsyncSession() as session:
        scope: Dict[str, Any] = {**test.globs, **NAMES, "session": session, "client": session.client}
        checker = doctest.OutputChecker()
        for example in test.examples:
            got = await run_one(example.source, scope)
            assert checker.check_output(example.want, got, FLAGS), (example.source, example.want, got)


async def run_one(source: str, scope: Dict[str, Any]) -> str:
    """As at a prompt that knows ``await``: what is printed, and the value of an expression."""
    printed: List[str] = []

    def show(*values: object, end: str = "\n", sep: str = " ") -> None:
        printed.append(sep.join(map(str, values)) + end)

    scope["print"] = show
    tree = ast.parse(source)
    is_value = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, "<example>", "eval" if is_value else "exec", flags)
    value = eval(code, scope)
    if inspect.isawaitable(value):
        value = await value
    if is_value and value is not None:
        printed.append(repr(value) + "\n")
    return "".join(printed)
