"""AgentFense's names, one for one: what its users write runs when the import line is changed."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List

import pytest

import sessile

TAKES: Dict[str, List[str]] = {
    "Sandbox.from_local": ["path", "preset", "permissions", "resources", "ignore_patterns", "labels", "auto_start"],
    "Sandbox.connect": ["sandbox_id"],
    "Sandbox.from_codebase": ["codebase_id", "preset", "permissions", "resources", "labels", "auto_start"],
    "Sandbox.session": ["shell", "env"],
    "Sandbox.run": ["command", "timeout", "env", "workdir", "raise_on_error"],
    "Sandbox.exec": ["command", "stdin", "env", "workdir", "timeout"],
    "Sandbox.exec_stream": ["command", "stdin", "env", "workdir", "timeout"],
    "Sandbox.read_file": ["path"],
    "Sandbox.write_file": ["path", "content"],
    "Sandbox.list_files": ["path", "recursive"],
    "Sandbox.start": [],
    "Sandbox.stop": [],
    "Sandbox.refresh": [],
    "Sandbox.destroy": [],
    "Client.create_codebase": ["name", "owner_id"],
    "Client.upload_file": ["codebase_id", "file_path", "content"],
    "Client.download_file": ["codebase_id", "file_path"],
    "Client.list_files": ["codebase_id", "path", "recursive"],
    "Client.delete_codebase": ["codebase_id"],
    "SandboxClient": ["endpoint", "secure"],
    "SandboxClient.create_sandbox": ["codebase_id", "permissions", "runtime", "image", "resources", "labels", "expires_in"],
    "SandboxClient.exec": ["sandbox_id", "command", "stdin", "env", "workdir", "timeout"],
    "SandboxClient.exec_stream": ["sandbox_id", "command", "stdin", "env", "workdir", "timeout"],
    "SandboxClient.create_session": ["sandbox_id", "shell", "env"],
    "SandboxClient.session_exec": ["session_id", "command", "timeout"],
    "PermissionRule": ["pattern", "permission", "type", "priority"],
    "ResourceLimits": ["memory_bytes", "cpu_quota", "cpu_shares", "pids_limit"],
    "ConnectionError": ["endpoint"],
    "CommandTimeoutError": ["command", "timeout_seconds"],
    "CommandExecutionError": ["exit_code", "stderr"],
}

DEFAULTS: Dict[str, Dict[str, Any]] = {
    "Sandbox.from_local": {"preset": "development", "auto_start": True},
    "Sandbox.session": {"shell": "/bin/sh", "env": None},
    "Sandbox.run": {"timeout": 60, "env": None, "workdir": None, "raise_on_error": False},
    "Sandbox.exec": {"stdin": None},
}

UNDER: Dict[str, str] = {
    "ConnectionError": "SandboxError",
    "SandboxNotFoundError": "SandboxError",
    "SandboxNotRunningError": "SandboxError",
    "CommandTimeoutError": "SandboxError",
    "CommandExecutionError": "SandboxError",
    "PermissionDeniedError": "SandboxError",
    "CodebaseError": "SandboxError",
    "CodebaseNotFoundError": "CodebaseError",
    "FileNotFoundError": "CodebaseError",
    "UploadError": "CodebaseError",
    "SessionError": "SandboxError",
    "SessionNotFoundError": "SessionError",
    "SessionClosedError": "SessionError",
    "ResourceLimitExceededError": "SandboxError",
    "InvalidConfigurationError": "SandboxError",
}


def found(name: str) -> Any:
    value: Any = sessile
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", TAKES)
def test_calls_take_what_they_took(name: str) -> None:
    for kind in ([name, "Async" + name] if name.startswith(("Sandbox.", "Client.")) else [name]):
        takes = inspect.signature(found(kind)).parameters
        assert [parameter for parameter in TAKES[name] if parameter not in takes] == [], kind
        for parameter, default in DEFAULTS.get(name, {}).items():
            assert takes[parameter].default == default, (kind, parameter)


@pytest.mark.parametrize("name", UNDER)
def test_errors_are_under_those_that_they_were_under(name: str) -> None:
    assert issubclass(found(name), found(UNDER[name]))


def test_modules_are_where_they_were() -> None:
    from sessile import exceptions, types, utils

    assert exceptions.CommandExecutionError is sessile.CommandExecutionError
    assert types.Sandbox(id="sb", codebase_id="cb", status=types.SandboxStatus.RUNNING).permissions == []
    assert [status.name for status in types.SessionStatus] == ["UNKNOWN", "ACTIVE", "CLOSED"]
    assert utils.walk_directory and utils.parse_ignore_file
    limits = sessile.ResourceLimits(memory_bytes=1, pids_limit=2)
    assert types.ResourceLimits.from_dict(limits.to_dict()) == limits
    assert sessile.SandboxNotFoundError("sb").grpc_code == 5 and sessile.SandboxError("x").grpc_code is None
    assert sessile.SandboxClient(endpoint="localhost:9000").endpoint == "http://localhost:9000"


def test_the_rest_is_there() -> None:
    assert [level.name for level in sessile.Permission] == ["NONE", "VIEW", "READ", "WRITE"]
    assert all(isinstance(getattr(sessile.Sandbox, name), property) for name in ("status", "id", "labels"))
    assert sessile.ExecResult is sessile.Result
    error = sessile.CommandExecutionError("false", 1, "", "why")
    assert (error.exit_code, error.stderr) == (1, "why")
    assert sessile.CommandTimeoutError("sleep", 2.0).timeout_seconds == 2.0
    assert sessile.ConnectionError("localhost:1").endpoint == "localhost:1"
