# Made from ../_async by scripts/make_sync.py. Do not edit.
"""The implementation, written once, with ``async``. ``_sync`` is made from it by
``scripts/make_sync.py``; only ``_io.py`` is written twice."""
