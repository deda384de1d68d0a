# smolagents has no types.
# mypy: disable-error-code="import-untyped,misc,no-untyped-call"
"""smolagents: its code runs in the session's Python, outside of the agent's own process."""

from __future__ import annotations

import ast
from typing import Any, Sequence

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from .shell import AnySession, sync_of

__all__ = ["SessileExecutor", "executor"]

# Which of some packages the session's Python has neither as a module nor as a distribution
# (`pillow` is a distribution, and its module is `PIL`). One expression: it leaves no names behind.
MISSING = """(lambda i: [n for n in {names!r} if not (n.isidentifier() and i.util.find_spec(n)) and
not any(i.metadata.distributions(name=n))])(__import__("importlib", fromlist=["metadata", "util"]))"""

# The value is pip's exit code.
INSTALL = """(lambda python, run, modules: (
run([python, "-m", "pip", "install", *{names!r}]).returncode, modules.invalidate_caches())[0])(
__import__("sys").executable, __import__("subprocess").run, __import__("importlib"))"""

# In seconds. A large package on a slow connection takes minutes.
INSTALL_WITHIN = 600


class SessileExecutor(RemotePythonExecutor):
    """Runs an agent's code in a session. What it defines is there in its next step, and afterwards."""

    def __init__(self, session: AnySession, additional_imports: Sequence[str] = (), logger: Any = None) -> None:
        super().__init__(list(additional_imports), logger or AgentLogger(level=LogLevel.ERROR))
        self.session = sync_of(session)
        self.installed_packages = self.install_packages(list(additional_imports))

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        result = self.session.python(code)
        logs = result.stdout
        error = result.error
        if error is not None and error.type == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(error.message, self.allow_pickle)
            return CodeOutput(output=answer, logs=logs, is_final_answer=True)
        if not result.success:
            raise AgentError(f"{logs}\nExecuting code yielded an error:\n{result.stderr}", self.logger)
        return CodeOutput(output=result.result, logs=logs, is_final_answer=False)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Installs those that the session's Python does not have."""
        missing = self.missing(additional_imports)
        if missing:
            result = self.session.python(INSTALL.format(names=missing), INSTALL_WITHIN)
            self.logger.log(result.stdout)
            if result.result != "0":
                raise AgentError(f"pip could not install {', '.join(missing)}:\n{result.stderr}", self.logger)
        return additional_imports

    def missing(self, names: list[str]) -> list[str]:
        found = self.session.python(MISSING.format(names=names)) if names else None
        if found is None or found.result is None:
            return names
        missing: list[str] = ast.literal_eval(found.result)
        return missing

    def cleanup(self) -> None:
        """The session is its owner's to close."""


def executor(session: AnySession, additional_imports: Sequence[str] = (), logger: Any = None) -> SessileExecutor:
    """A session's Python for a code agent: ``CodeAgent(…, executor=executor(session))``."""
    return SessileExecutor(session, additional_imports, logger)
