# smolagents has no types.
# mypy: disable-error-code="import-untyped,misc,no-untyped-call"
"""smolagents: its code runs in the session's Python, outside of the agent's own process."""

from __future__ import annotations

from typing import Any, Sequence

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from .shell import AnySession, sync_of

__all__ = ["SessileExecutor", "executor"]


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

    def cleanup(self) -> None:
        """The session is its owner's to close."""


def executor(session: AnySession, additional_imports: Sequence[str] = (), logger: Any = None) -> SessileExecutor:
    """A session's Python for a code agent: ``CodeAgent(…, executor=executor(session))``."""
    return SessileExecutor(session, additional_imports, logger)
