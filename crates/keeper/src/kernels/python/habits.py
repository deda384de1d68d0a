"""Lines that are Python only in a notebook: `!ls`, `x = !ls`, `%cd dir`, `pip install
x`, a `%%bash` cell.

Turns them into calls of `magics`, line by line.

Invariants: text that compiles is never examined, and in text that does not, only the
line that the compiler rejects is rewritten: a similar line inside a string stays as it
is. Line numbers do not change.
"""
import re

CALL = "__sessile_line__"
INDENT = r"^([ \t]*)"
ASSIGN = re.compile(INDENT + r"([A-Za-z_][\w.\[\]'\", *]*?)[ \t]*=[ \t]*([!%])(?!=)(.+)$")
BANG = re.compile(INDENT + r"!(!?)(.+)$")
MAGIC = re.compile(INDENT + r"%([A-Za-z_]\w*)(?:[ \t]+(.*))?$")
PIP = re.compile(INDENT + r"(pip3?|python3? -m pip)[ \t]+((?:install|uninstall|list|show|freeze|download|"
                 r"check|index|config|cache|wheel|search|inspect|hash|help|debug)\b.*)$")
CHANGE = re.compile(INDENT + r"cd[ \t]+(\S.*)$")
CELL = re.compile(r"^%%([A-Za-z_]\w*)(?:[ \t]+(.*))?$")
# The compiler names the first bad line only; each attempt rewrites one.
MOST_LINES = 500


def compile(kernel, text, name, problem, notes):
    """Returns a program, or None if there is no such line at the error."""
    magics = load("magics")
    cell = _rewrite_cell(text, magics)
    if cell is not None:
        magics.offer(kernel, CALL, notes)
        return kernel.compiler.compile(cell, name)
    lines = text.replace("\r\n", "\n").split("\n")
    changed = False
    for _ in range(MOST_LINES):
        if not _mend(lines, problem, magics):
            break
        changed = True
        try:
            program = kernel.compiler.compile("\n".join(lines), name)
        except SyntaxError as again:
            problem = again
            continue
        magics.offer(kernel, CALL, notes)
        return program
    if changed:
        raise problem.with_traceback(None)
    return None


def _mend(lines, problem, magics):
    number = problem.lineno
    if not number or number > len(lines):
        return False
    index = number - 1
    # The error may be reported in a continuation line of a shell command.
    while index > 0 and lines[index - 1].endswith("\\") and not _is_habit(lines[index], magics):
        index -= 1
    whole, last = lines[index], index
    while whole.endswith("\\") and last + 1 < len(lines):
        last += 1
        whole += "\n" + lines[last]
    rewritten = rewrite(whole.replace("\\\n", " ") if last > index else whole, magics)
    if rewritten is None:
        return False
    lines[index] = rewritten
    for blank in range(index + 1, last + 1):
        lines[blank] = ""
    return True


def _is_habit(line, magics):
    return rewrite(line, magics) is not None


def rewrite(line, magics):
    line = line.rstrip()
    match = ASSIGN.match(line)
    if match:
        indent, target, sign, rest = match.groups()
        call = _call("capture", rest.strip()) if sign == "!" else _magic_call(rest.strip(), magics)
        return None if call is None else "%s%s = %s" % (indent, target, call)
    match = BANG.match(line)
    if match:
        kind = "capture" if match.group(2) else "system"
        return match.group(1) + _call(kind, match.group(3).strip())
    match = PIP.match(line)
    if match:
        return match.group(1) + _call("pip", match.group(3))
    match = CHANGE.match(line)
    if match:
        return match.group(1) + _call("cd", match.group(2))
    match = MAGIC.match(line)
    if match:
        call = _magic_call(line.strip()[1:], magics)
        return None if call is None else match.group(1) + call
    return None


def _magic_call(text, magics):
    name, _, rest = text.partition(" ")
    return _call(name, rest.strip()) if name in magics.LINES else None


def _rewrite_cell(text, magics):
    head, _, body = text.lstrip().partition("\n")
    match = CELL.match(head.rstrip())
    if match is None or match.group(1) not in magics.CELLS:
        return None
    return "%s(%r, %r, %r)" % (CALL, "%%" + match.group(1), match.group(2) or "", body)


def _call(name, rest):
    return "%s(%r, %r)" % (CALL, name, rest)
