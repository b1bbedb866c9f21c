"""Which handler takes a request, and what about its version need be worked out only once."""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from barnabas.server.handlers import Handler, served_versions
from barnabas.server.metrics.registry import Metrics, RequestMetrics
from barnabas.server.request_context import Call
from barnabas.wire.apis import ApiKey, api, request_header_version, response_header_version
from barnabas.wire.error_response import ErrorCounter, error_counter
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Buffer, Message, VersionRange

_SIZE = Struct(">i")
_SIZE_AND_ID = Struct(">ii")
_KEY_AND_VERSION = Struct(">hh")
_NO_TAGS = b"\0"

Reader = Callable[[Buffer, int], tuple[Any, int]]
Writer = Callable[[Any, Outgoing], None]


class Route:
    """One version of one API."""

    __slots__ = (
        "_flexible_answer",
        "_write",
        "count_errors",
        "flexible",
        "handle",
        "is_produce",
        "metrics",
        "name",
        "read",
        "version",
    )

    def __init__(self, key: ApiKey, version: int, handle: Handler, metrics: RequestMetrics) -> None:
        request, response = api(key).request, api(key).response
        self.name = api(key).name
        self.version = version
        self.is_produce = key == ApiKey.PRODUCE
        self.handle = handle
        self.metrics = metrics
        self.flexible = request_header_version(key, version) > 1
        self.read: Reader = request.reader(version)
        self.count_errors: ErrorCounter = error_counter(response, metrics.errors)
        self._flexible_answer = response_header_version(key, version) > 0
        self._write: Writer = response.writer(version)
        metrics.requests.setdefault(version, 0)

    def encode(self, response: Message, correlation_id: int, out: Outgoing) -> None:
        """Append the answer's frame, or leave `out` as it was and raise."""
        start, regions_before = len(out), len(out.regions)
        out += _SIZE_AND_ID.pack(0, correlation_id)
        if self._flexible_answer:
            out += _NO_TAGS
        try:
            self._write(response, out)
        except BaseException:
            del out[start:]
            del out.regions[regions_before:]
            raise
        size = len(out) - start - 4
        if len(out.regions) > regions_before:
            for _, region in out.regions[regions_before:]:
                size += region.size_bytes
        _SIZE.pack_into(out, start, size)


class Routes:
    """The routes asked for so far, of all that a listener's handlers serve."""

    __slots__ = ("_found", "_handlers", "_metrics", "_unspoken_api_versions", "get")

    def __init__(self, metrics: Metrics, handlers: Mapping[ApiKey, Handler]) -> None:
        self._metrics = metrics
        self._handlers = handlers
        self._unspoken_api_versions: Route | None = None
        self._found: dict[int, Route] = {}
        self.get = self._found.get
        """The route of `key << 16 | version`, if it was found before."""

    def find(self, code: int) -> Route:
        """The route of a request not seen before; ProtocolViolation where nothing can be said.

        Except to ApiVersions, which a client sends before it knows what is spoken here: a
        version too new is answered with those to use instead (KIP-511).
        """
        key, version = _KEY_AND_VERSION.unpack(_SIZE.pack(code))
        if key not in self._handlers:
            raise ProtocolViolation(f"API key {key} is not served here")
        api_key = ApiKey(key)
        versions = served_versions(api_key)
        if version in versions:
            route = self._open(api_key, version)
            self._found[code] = route
            return route
        if api_key is ApiKey.API_VERSIONS:
            if self._unspoken_api_versions is None:
                self._unspoken_api_versions = self._refuse_api_versions(versions)
            return self._unspoken_api_versions
        raise ProtocolViolation(f"{api(key).name} v{version} is not served here, only {versions}")

    def _open(self, key: ApiKey, version: int) -> Route:
        return Route(key, version, self._handlers[key], self._metrics.request(api(key).name))

    def _refuse_api_versions(self, versions: VersionRange) -> Route:
        """Answers version 0 to whatever was asked, without reading it."""

        async def refuse(_: object, __: Call) -> ApiVersionsResponse:
            spoken = ApiVersion(
                api_key=ApiKey.API_VERSIONS, min_version=versions.min, max_version=versions.max
            )
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[spoken])

        route = self._open(ApiKey.API_VERSIONS, 0)
        route.handle = refuse
        route.read = lambda frame, _: (ApiVersionsRequest(), len(frame))
        return route
