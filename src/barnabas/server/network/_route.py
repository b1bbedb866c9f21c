# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""One version of one API: its lane, its handler, and how its bytes are read and written."""

from __future__ import annotations

from barnabas.wire.apis import api, request_header_version, response_header_version
from barnabas.wire.codec.layout import layout
from barnabas.wire.error_response import error_counter

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._system import put_int32
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize

    Size = cython.typedef(cython.Py_ssize_t)


@cython.final
@cython.cclass
class Route:
    """Prepared once; `_route.pxd` has its fields. `lane` may be None."""

    def __init__(self, key, version, handle, metrics, lane=None):
        request, response = api(key).request, api(key).response
        self.key = key.value
        self.name = api(key).name
        self.version = version
        self.handle = handle
        self.lane = lane
        self.metrics = metrics
        self.has_flexible_header = request_header_version(key, version) > 1
        self.has_throttle_time = any(
            field.name == "throttle_time_ms" and version in field.versions
            for field in layout(response)
        )
        self.read = request.reader(version)
        self.count_errors = error_counter(response, metrics.errors)
        self.has_flexible_response_header = response_header_version(key, version) > 0
        self.write = response.writer(version)
        metrics.requests.setdefault(version, 0)

    def set_reader(self, read):
        """Reads requests by this function instead."""
        self.read = read

    def encode(self, response, correlation_id, out):
        """Appends the frame of a response. On an error `out` is left as it was."""
        start: Size = len(out)
        regions_before: Size = len(out.regions)
        append_header(out, 0, correlation_id, self.has_flexible_response_header)
        try:
            self.write(response, out)
        except BaseException:
            del out[start:]
            del out.regions[regions_before:]
            raise
        size: Size = len(out) - start - 4
        if len(out.regions) > regions_before:
            for _, region in out.regions[regions_before:]:
                size += region.size_bytes
        put_size(out, start, size)


def append_response(sink, correlation_id, has_flexible_response_header, out):
    """Appends the frame of a response whose body is in a sink, and clears the sink."""
    size: Size = 4 + has_flexible_response_header + sink.position
    for _, region in sink.regions:
        size += region.size_bytes
    append_header(out, size, correlation_id, has_flexible_response_header)
    sink.append_to(out)
    sink.clear()  # its regions keep files open


def append_header(out, size, correlation_id, has_flexible_response_header):
    """Appends the size of a frame and the header of a response, without tagged fields."""
    start: Size = len(out)
    if cython.compiled:
        PyByteArray_Resize(out, start + 8 + has_flexible_response_header)
        data: cython.p_char = PyByteArray_AS_STRING(out) + start
        put_int32(data, size)
        put_int32(data + 4, correlation_id)
        if has_flexible_response_header:
            data[8] = 0
    else:
        out += size.to_bytes(4, "big") + correlation_id.to_bytes(4, "big", signed=True)
        if has_flexible_response_header:
            out.append(0)


def put_size(out, start, size):
    """Writes the size of a frame that starts there."""
    if cython.compiled:
        put_int32(PyByteArray_AS_STRING(out) + start, size)
    else:
        out[start : start + 4] = size.to_bytes(4, "big")
