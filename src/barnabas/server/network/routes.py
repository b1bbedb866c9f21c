"""The routes of a listener's requests: by API and version."""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from barnabas.server.handlers import Handler, served_versions
from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.network._route import Route
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import VersionRange

_CODE = Struct(">i")
_KEY_AND_VERSION = Struct(">hh")

NO_LANES: Final[Mapping[ApiKey, Lane]] = {}


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
        key, version = _KEY_AND_VERSION.unpack(_CODE.pack(code))
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
        route.set_reader(lambda frame, _: (ApiVersionsRequest(), len(frame)))
        return route
