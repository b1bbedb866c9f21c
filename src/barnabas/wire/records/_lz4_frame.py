# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Plain LZ4 frames, block by block, into a given buffer.

A library's reader of frames allocates buffers for each; that of blocks does not, and takes a tenth
of the time for a small batch. A plain frame has independent blocks and no checksums, as Kafka's
clients in Java write them. Every other frame is for the library.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)

MAGIC = b"\x04\x22\x4d\x18"

_FLAGS_AT = 4
_SHORTEST_HEADER = 7
_VERSION = 0x40
_INDEPENDENT_BIT = 0x20
_BLOCK_CHECKSUM_BIT = 0x10
_CONTENT_SIZE_BIT = 0x08
_CONTENT_CHECKSUM_BIT = 0x04

_decompress_block_into: object = None
"""A library's function, imported when the first frame is decompressed."""

_checked_headers: dict[bytes, int] = {}
"""The size of the largest block by the headers whose checksum is right; there are few."""
_MAX_CHECKED = 64


def has_linked_blocks(compressed: object) -> bool:
    """Returns whether Java cannot read the frame, which begins with the magic."""
    view: cython.const[cython.uchar][::1] = compressed
    at: Size = _FLAGS_AT
    return len(compressed) > at and not view[at] & _INDEPENDENT_BIT


def first_frame_bytes(compressed: object) -> int:
    """Returns the size of the first frame, or of everything if that is truncated."""
    view: cython.const[cython.uchar][::1] = compressed
    end: Size = view.shape[0] if cython.compiled else len(compressed)
    if end <= _FLAGS_AT:
        return end
    at: Size = _FLAGS_AT
    flags: cython.int = view[at]
    position: Size = _SHORTEST_HEADER + (8 if flags & _CONTENT_SIZE_BIT else 0)
    size: Size
    while position + 4 <= end:
        size = (
            view[position]
            | (view[position + 1] << 8)
            | (view[position + 2] << 16)
            | ((view[position + 3] & 0x7F) << 24)
        )
        is_end: cython.bint = size == 0 and view[position + 3] == 0
        position += 4
        if is_end:
            return min(position + (4 if flags & _CONTENT_CHECKSUM_BIT else 0), end)
        position += size + (4 if flags & _BLOCK_CHECKSUM_BIT else 0)
    return end


def decompress_plain_into(compressed: object, room: object) -> object:
    """Returns the size of the content, of one plain frame.

    Returns None if there is anything else, or if the content is invalid or does not fit.
    """
    view: cython.const[cython.uchar][::1] = compressed
    end: Size = len(compressed)
    room_bytes: Size = len(room)
    if end < _SHORTEST_HEADER + 4:
        return None
    header: bytes = bytes(compressed[:_SHORTEST_HEADER])
    known: object = _checked_headers.get(header)
    if known is None:
        known = _check_header(header)
        if known is None:
            return None
    max_block: Size = known
    position: Size = _SHORTEST_HEADER
    used: Size = 0
    size: Size
    count: Size
    while position + 4 <= end:
        size = (
            view[position]
            | (view[position + 1] << 8)
            | (view[position + 2] << 16)
            | ((view[position + 3] & 0x7F) << 24)
        )
        is_stored: cython.bint = view[position + 3] & 0x80 != 0
        position += 4
        if size == 0 and not is_stored:
            return used if position == end else None
        if size > max_block or size > end - position:
            return None
        block = compressed[position : position + size]
        position += size
        if is_stored:
            if size > room_bytes - used:
                return None
            room[used : used + size] = block
            used += size
            continue
        count = min(max_block, room_bytes - used)
        if count <= 0:
            return None
        try:
            used += _decompress_block_into(block, room[used:], output_len=count)
        except Exception:
            return None
    return None


def _check_header(header: bytes) -> object:
    """Returns the size of the largest block, if the header is that of a plain frame."""
    global _decompress_block_into
    from cramjam import lz4
    from xxhash import xxh32_intdigest

    _decompress_block_into = lz4.decompress_block_into
    flags: cython.int = header[_FLAGS_AT]
    block_size_id: cython.int = header[_FLAGS_AT + 1] >> 4
    if (
        header[:_FLAGS_AT] != MAGIC
        or flags != _VERSION | _INDEPENDENT_BIT
        or not 4 <= block_size_id <= 7
        or header[_FLAGS_AT + 1] & 0x8F
        or (xxh32_intdigest(header[_FLAGS_AT : _SHORTEST_HEADER - 1]) >> 8) & 0xFF
        != header[_SHORTEST_HEADER - 1]
    ):
        return None
    if len(_checked_headers) >= _MAX_CHECKED:
        _checked_headers.clear()
    max_block = 1 << (8 + 2 * block_size_id)
    _checked_headers[header] = max_block
    return max_block
