"""ApiVersions (key 18): the versions that this node serves; the first request of a client.

v1 throttles; v3 the client's software, and features in the response; v4 features from level 0;
v5 the cluster and node that the client expects (KIP-1242).

`barnabas.server.network.routes` responds to newer versions (KIP-511). The APIs of client telemetry
are left out while nobody has subscribed to metrics of clients: clients would ask for nothing, and
librdkafka prints a line when it does.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from barnabas.metadata.features import KRAFT_VERSION, SUPPORTED
from barnabas.server.handlers import ApiHandlers, served_versions
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode, ControllerNode

FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_WITH_LEVEL_ZERO = 4
ANY_NODE = -1

LOWEST_PRODUCE_REPORTED = 0
"""As in Kafka, though neither serves it: librdkafka compresses only if it sees version 0."""

_NONE: frozenset[ApiKey] = frozenset()
_TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    broker = context.broker
    hidden = _NONE if broker.telemetry.has_subscriptions else _TELEMETRY
    return build_response(request, context, broker, broker.controller.quorum.kraft_version, hidden)


def build_response(
    request: ApiVersionsRequest,
    context: RequestContext,
    node: "BrokerNode | ControllerNode",
    kraft_version: int,
    hidden: frozenset[ApiKey] = _NONE,
) -> ApiVersionsResponse:
    """Returns the response of a broker or a controller, without the hidden APIs."""
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE:
        _record_software(request, context)
    _require_expected_node(request, node)
    image = node.image
    # The quorum's version is in control records, which are not part of the image.
    levels = image.features | {KRAFT_VERSION: kraft_version}
    return ApiVersionsResponse(
        api_keys=_served(node.handlers, hidden),
        supported_features=_supported_features(context.api_version),
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(levels.items())
            if level > 0
        ],
    )


def _record_software(request: ApiVersionsRequest, context: RequestContext) -> None:
    software = (request.client_software_name, request.client_software_version)
    if not all(_SOFTWARE.fullmatch(text) for text in software):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "The client's software name or version is malformed."
        )
    context.connection.software = software


def _require_expected_node(
    request: ApiVersionsRequest, node: "BrokerNode | ControllerNode"
) -> None:
    """Raises REBOOTSTRAP_REQUIRED if the client expects another cluster or node."""
    if request.cluster_id not in (None, node.cluster_id):
        raise KafkaError(
            ErrorCode.REBOOTSTRAP_REQUIRED,
            f"This is cluster {node.cluster_id}, not {request.cluster_id}.",
        )
    if request.node_id not in (ANY_NODE, node.node_id):
        raise KafkaError(
            ErrorCode.REBOOTSTRAP_REQUIRED, f"This is node {node.node_id}, not {request.node_id}."
        )


@cache
def _served(handlers: ApiHandlers, hidden: frozenset[ApiKey]) -> list[ApiVersion]:
    reported = []
    for key in sorted(handlers.keys() - hidden):
        versions = served_versions(key)
        lowest = LOWEST_PRODUCE_REPORTED if key is ApiKey.PRODUCE else versions.min
        reported.append(ApiVersion(api_key=key, min_version=lowest, max_version=versions.max))
    return reported


@cache
def _supported_features(version: int) -> list[SupportedFeatureKey]:
    """Clients before v4 fail on a feature that starts at level 0."""
    return [
        SupportedFeatureKey(name=name, min_version=levels.min, max_version=levels.max)
        for name, levels in sorted(SUPPORTED.items())
        if levels.min > 0 or version >= FIRST_VERSION_WITH_LEVEL_ZERO
    ]
