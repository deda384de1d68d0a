"""A run's value in the forms that a client can show.

Invariants: every form is bounded; a method that fails only loses its form, not the run
(only `repr` itself may fail the run, as it would when typed).
"""
MOST_TEXT = 1 << 20
# Base64 of a large photograph; beyond this size a file is the better answer.
MOST_DATA = 16 << 20
PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
FORMS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
)
# The first bytes of picture files.
PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
BACKEND_KEY, BACKEND = b"MPLBACKEND", b"Agg"


def render(value, notes):
    text = str.__str__(repr(value))
    if len(text) > MOST_TEXT:
        notes.append("the value's text was cut: %d of %d characters" % (MOST_TEXT, len(text)))
        text = text[:MOST_TEXT]
    data = {}
    if type(value) is bytes or type(value) is str:
        kind = _kind_of_picture(value)
        if kind is not None:
            _add(data, kind, _to_json(value), notes)
    elif type(value) not in PLAIN and not isinstance(value, type):
        data = _forms(value, notes)
    return {"text": text, "data": data}


def _kind_of_picture(value):
    """Returns the type of a picture in plain bytes or text: all of it, not a part."""
    if type(value) is bytes:
        return next((kind for magic, kind in PICTURES if value.startswith(magic)), None)
    if "</svg>" not in value[-100:] or not value.rstrip().endswith("</svg>"):
        return None
    head = value[:1000].lstrip()
    is_svg = head.startswith("<svg") or head.startswith(("<?xml", "<!--", "<!DOCTYPE svg")) and "<svg" in head
    return "image/svg+xml" if is_svg else None


def _forms(value, notes):
    forms = _bundle(value)
    for method, kind in FORMS:
        if kind not in forms:
            found = _call(value, method)
            if type(found) is tuple and len(found) == 2:
                found = found[0]
            if found is not None:
                forms[kind] = found
    data = {}
    for kind, form in forms.items():
        try:
            _add(data, str(kind), _to_json(form), notes)
        except Exception:
            pass
    return data


def _bundle(value):
    found = _call(value, "_repr_mimebundle_")
    if type(found) is tuple and found:
        found = found[0]
    if not isinstance(found, dict):
        return {}
    return {kind: form for kind, form in found.items() if kind != "text/plain"}


def _call(value, method):
    # Looked up on the type: an object that answers to any name has no such form.
    if getattr(type(value), method, None) is None:
        return None
    try:
        return getattr(value, method)()
    except Exception:
        return None


def _to_json(form):
    """Returns plain types only, bytes as base64: what the channel can send."""
    if isinstance(form, (bytes, bytearray, memoryview)):
        from binascii import b2a_base64
        return b2a_base64(form, newline=False).decode()
    if isinstance(form, str):
        return str.__str__(form)
    if form is None or isinstance(form, bool):
        return form
    if isinstance(form, int):
        return int(form)
    if isinstance(form, float):
        return float(form)
    if isinstance(form, dict):
        return {str(key): _to_json(item) for key, item in form.items()}
    if isinstance(form, (list, tuple)):
        return [_to_json(item) for item in form]
    raise TypeError


def _add(data, kind, form, notes):
    if type(form) is str and len(form) > MOST_DATA:
        notes.append("%s of the value was left out: %d characters" % (kind, len(form)))
        return
    data[kind] = form


def add_figures(modules, result, notes):
    """Adds open matplotlib figures as PNG and closes them, as after a notebook cell."""
    pyplot = modules["matplotlib.pyplot"]
    numbers = pyplot.get_fignums()
    if not numbers:
        return result
    figures = [pyplot.figure(number) for number in numbers]
    try:
        pictures = [_draw(figure) for figure in figures]
    finally:
        pyplot.close("all")
    if result is None:
        result = {"text": "\n".join([repr(figure) for figure in figures]), "data": {}}
    own = result["data"].get("image/png")
    if own is not None:
        pictures = (own if type(own) is list else [own]) + pictures
    pictures = [picture for picture in pictures if len(picture) <= MOST_DATA]
    result["data"]["image/png"] = pictures[0] if len(pictures) == 1 else pictures
    return result


def _draw(figure):
    import io
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    return _to_json(buffer.getvalue())


def hint_backend(environ):
    """Makes matplotlib find Agg while it is imported.

    It reads os.environ, so only Python's view of the environment is changed: child
    processes do not inherit the hint, and it is gone after the run.
    """
    view = getattr(environ, "_data", None)
    if type(view) is not dict or BACKEND_KEY in view:
        return False
    view[BACKEND_KEY] = BACKEND
    return True


def withdraw_backend(environ):
    if environ._data.get(BACKEND_KEY) == BACKEND:
        del environ._data[BACKEND_KEY]
