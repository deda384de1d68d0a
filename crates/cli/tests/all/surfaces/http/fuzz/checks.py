"""What Schemathesis is told about Sessile: a check of ours, and the requests
that a description cannot tell from right ones."""

import re

import schemathesis

# Refusals that depend on the machine and on what was done before, not on the
# request's form.
OF_THE_WORLD = {
    "bad_command",
    "bad_directory",
    "bad_file",
    "bad_archive",
    "is_a_directory",
    "not_a_directory",
    "not_a_file",
    "run_lost",
    "session_ended",
    "checkpoint_lost",
    "too_many_sessions",
    "unknown_program",
}

OF_CONTENT = (
    "the pattern ",
    "the path is not base64",
    "this server has no model",
    "what a session without a sandbox",
    "sandbox.permissions",
    "sandbox.network",
    "sandbox.binds",
)


@schemathesis.check
def what_is_described_is_taken(ctx, response, case):
    """A request that fits the description is not refused for its form.

    The check that comes with Schemathesis goes by the status alone, and would
    also refuse that a directory is not there.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if response.status_code not in range(400, 500):
        return
    if response.status_code in (401, 403, 404, 409):
        return
    if excludes_itself(case) or has_ill_formed_header(case):
        return
    error = response.json()["error"]
    # Not every text is a regular expression, a pattern for paths or a path in the
    # workspace, and a schema cannot say which is.
    if error["message"].startswith(OF_CONTENT):
        return
    if error["code"] == "bad_path":
        return
    if error["code"] not in OF_THE_WORLD:
        raise AssertionError(f"described, and refused: {error}")


def has_ill_formed_header(case):
    """Schemathesis takes some values of headers for right ones, whatever their
    pattern says."""
    for parameter in case.operation.definition.raw.get("parameters", []):
        pattern = parameter.get("schema", {}).get("pattern")
        value = (case.headers or {}).get(parameter["name"])
        if parameter["in"] == "header" and pattern and value is not None:
            if not re.search(pattern, str(value)):
                return True
    return False


def excludes_itself(case):
    """Parameters that exclude each other: OpenAPI has no words for these."""
    query = case.query or {}
    match case.operation.path:
        case "/v1/restore":
            # The file is the body, or named by `path`.
            return "path" in query
        case path if path.endswith("/output"):
            return "cursor" in query and ("stream" in query or "from" in query)
        case _:
            return False


@schemathesis.serializer("application/x-tar")
def tar(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Runs end, whatever they are: a command may be one that waits for ever."""
    if isinstance(case.body, dict) and case.operation.path.endswith(("/exec", "/eval")):
        for name in ("timeout", "no_output_timeout"):
            if case.body.get(name) is not None and case.meta.generation.mode.is_positive:
                case.body[name] = "1s"


@schemathesis.hook
def before_load_schema(ctx, raw_schema):
    """Letters of all scripts are written as Python's regular expressions have them."""

    def translate(part):
        if isinstance(part, dict):
            pattern = part.get("pattern")
            if isinstance(pattern, str):
                part["pattern"] = pattern.replace(r"\p{Alphabetic}\p{N} _", r"\w ")
            for value in part.values():
                translate(value)
        elif isinstance(part, list):
            for value in part:
                translate(value)

    translate(raw_schema)
