"""Routes: the handler, reader and writer of every version of an API, prepared once."""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from barnabas.server.handlers import Handler, served_versions
from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import MetricsRegistry, RequestMetrics
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api, request_header_version, response_header_version
from barnabas.wire.codec.layout import layout
from barnabas.wire.error_response import ErrorCounter, error_counter
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Buffer, Message, VersionRange

_SIZE = Struct(">i")
_SIZE_AND_ID = Struct(">ii")
_KEY_AND_VERSION = Struct(">hh")
_NO_TAGS = b"\0"

Reader = Callable[[Buffer, int], tuple[Any, int]]
Writer = Callable[[Any, Outgoing], None]


NO_LANES: Final[Mapping[ApiKey, Lane]] = {}


class Route:
    """One version of one API."""

    __slots__ = (
        "_write",
        "count_errors",
        "handle",
        "has_flexible_header",
        "has_flexible_response_header",
        "has_throttle_time",
        "key",
        "lane",
        "metrics",
        "name",
        "read",
        "version",
    )

    def __init__(
        self,
        key: ApiKey,
        version: int,
        handle: Handler,
        metrics: RequestMetrics,
        lane: Lane | None = None,
    ) -> None:
        request, response = api(key).request, api(key).response
        self.key = key.value
        self.name = api(key).name
        self.version = version
        self.handle = handle
        self.lane = lane
        """Serves plain requests instead of the handler."""
        self.metrics = metrics
        self.has_flexible_header = request_header_version(key, version) > 1
        self.has_throttle_time = any(
            field.name == "throttle_time_ms" and version in field.versions
            for field in layout(response)
        )
        self.read: Reader = request.reader(version)
        self.count_errors: ErrorCounter = error_counter(response, metrics.errors)
        self.has_flexible_response_header = response_header_version(key, version) > 0
        self._write: Writer = response.writer(version)
        metrics.requests.setdefault(version, 0)

    def encode(self, response: Message, correlation_id: int, out: Outgoing) -> None:
        """Appends the frame of a response. On an error `out` is left as it was."""
        start, regions_before = len(out), len(out.regions)
        out += _SIZE_AND_ID.pack(0, correlation_id)
        if self.has_flexible_response_header:
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


class RouteTable:
    """The routes of one listener, each created when its version of the API is first requested.

    `lanes` has the lanes of the APIs that have one; without them, the handlers serve every request.
    `unserved` says why there is no handler for an API.
    """

    __slots__ = (
        "_handlers",
        "_lanes",
        "_metrics",
        "_routes",
        "_unserved",
        "_unsupported_api_versions",
        "get",
    )

    def __init__(
        self,
        metrics: MetricsRegistry,
        handlers: Mapping[ApiKey, Handler],
        lanes: Mapping[ApiKey, Lane] = NO_LANES,
        *,
        unserved: str = "is not served here",
    ) -> None:
        self._metrics = metrics
        self._handlers = handlers
        self._lanes = lanes
        self._unserved = unserved
        self._unsupported_api_versions: Route | None = None
        self._routes: dict[int, Route] = {}
        self.get = self._routes.get
        """Returns the route of `key << 16 | version`, or None if it was not requested before."""

    def resolve(self, code: int) -> Route:
        """Creates the route of a version that was not requested before.

        Raises ProtocolViolation if it is not served, except for ApiVersions, which a client sends
        before it knows the versions of the broker: the response names them (KIP-511).
        """
        key, version = _KEY_AND_VERSION.unpack(_SIZE.pack(code))
        if key not in self._handlers:
            raise ProtocolViolation(f"API key {key} {self._unserved}")
        api_key = ApiKey(key)
        versions = served_versions(api_key)
        if version in versions:
            route = self._create(api_key, version)
            self._routes[code] = route
            return route
        if api_key is ApiKey.API_VERSIONS:
            if self._unsupported_api_versions is None:
                self._unsupported_api_versions = self._create_unsupported_api_versions(versions)
            return self._unsupported_api_versions
        raise ProtocolViolation(f"{api(key).name} v{version} is not served here, only {versions}")

    def _create(self, key: ApiKey, version: int) -> Route:
        metrics = self._metrics.request(api(key).name)
        return Route(key, version, self._handlers[key], metrics, self._lanes.get(key))

    def _create_unsupported_api_versions(self, versions: VersionRange) -> Route:
        """Returns the route that responds in version 0 to any request, without reading it."""

        async def handle(_: object, __: RequestContext) -> ApiVersionsResponse:
            supported = ApiVersion(
                api_key=ApiKey.API_VERSIONS, min_version=versions.min, max_version=versions.max
            )
            return ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[supported]
            )

        route = self._create(ApiKey.API_VERSIONS, 0)
        route.handle = handle
        route.lane = None
        route.read = lambda frame, _: (ApiVersionsRequest(), len(frame))
        return route
