"""Separates a copy from memory that is shared with children.

A copy of this process inherits such mappings (`mmap.mmap(-1, …)`, the values and locks
of `multiprocessing`) as they are, so each side would see what the other writes. The
copy replaces them with its own memory, with the same contents, still shared with the
children that the copy itself will have. Mappings of files that have a name are left
alone: they are the file.
"""
from posix import O_CLOEXEC, O_RDONLY, close, open, read

# Beyond this, copying would take more time and memory than anyone expects.
MOST_BYTES = 1 << 30
PROT_READ, PROT_WRITE = 1, 2
MAP_SHARED, MAP_ANONYMOUS = 1, 32
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2


def separate():
    """Separates the memory. Returns the names of what could not be separated."""
    ranges = _shared(_maps())
    if not ranges:
        return []
    total = sum(end - start for start, end in ranges)
    if total > MOST_BYTES:
        return ["shared memory (%d bytes): it is too large to copy, and is shared" % total]
    try:
        _replace(ranges)
    except Exception as problem:
        return ["shared memory (%d bytes): it is shared (%s)" % (total, problem)]
    return []


def _maps():
    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
    try:
        parts = []
        while True:
            part = read(fd, 1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
    finally:
        close(fd)


def _shared(maps):
    if b" rw-s " not in maps:
        return []
    ranges = []
    for line in maps.split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[1] == b"rw-s" and fields[5].endswith(b" (deleted)"):
            start, _, end = fields[0].partition(b"-")
            ranges.append((int(start, 16), int(end, 16)))
    return ranges


def _replace(ranges):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    word, number = ctypes.c_size_t, ctypes.c_int
    mmap, mremap = libc.mmap, libc.mremap
    mmap.restype = mremap.restype = word
    mmap.argtypes = [word, word, number, number, number, ctypes.c_long]
    mremap.argtypes = [word, word, word, number, word]
    failed = word(-1).value
    for start, end in ranges:
        size = end - start
        kind = MAP_SHARED | MAP_ANONYMOUS
        fresh = mmap(0, size, PROT_READ | PROT_WRITE, kind, -1, 0)
        if fresh == failed:
            raise OSError(ctypes.get_errno(), "no memory for a copy")
        ctypes.memmove(fresh, start, size)
        if mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start) == failed:
            raise OSError(ctypes.get_errno(), "it cannot be replaced")
