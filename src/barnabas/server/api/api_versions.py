"""ApiVersions (key 18): what this broker speaks, asked before anything else.

v1 throttles; v3 names the client's software, answers with features; v4 features from level 0;
v5 the cluster and node the client believes to have reached (KIP-1242).

A version newer than these is answered before it gets here (KIP-511, see `server.routes`).
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
    from barnabas.server.broker_node import BrokerNode
    from barnabas.server.controller_node import ControllerNode

FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_WITH_LEVEL_ZERO = 4
ANY_NODE = -1

LOWEST_PRODUCE_TOLD = 0
"""As Kafka tells it, though neither serves it: librdkafka compresses only if it sees version 0."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    broker = context.broker
    return answer(request, context, broker, broker.controller.quorum.kraft_version)


def answer(
    request: ApiVersionsRequest,
    context: RequestContext,
    node: "BrokerNode | ControllerNode",
    kraft_version: int,
) -> ApiVersionsResponse:
    """What any node tells of itself."""
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE:
        _note_software(request, context)
    _refuse_strays(request, node)
    image = node.image
    # The quorum keeps its own version, in control records that build no image.
    levels = image.features | {KRAFT_VERSION: kraft_version}
    return ApiVersionsResponse(
        api_keys=_served(node.handlers),
        supported_features=_supported_features(context.api_version),
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(levels.items())
            if level > 0
        ],
    )


def _note_software(request: ApiVersionsRequest, context: RequestContext) -> None:
    software = (request.client_software_name, request.client_software_version)
    if not all(_SOFTWARE.fullmatch(text) for text in software):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "The client's software name or version is not well formed."
        )
    context.connection.software = software


def _refuse_strays(request: ApiVersionsRequest, node: "BrokerNode | ControllerNode") -> None:
    """A client that meant to reach another cluster or node has to find its way anew."""
    if request.cluster_id not in (None, node.cluster_id):
        raise KafkaError(
            ErrorCode.REBOOTSTRAP_REQUIRED,
            f"This is cluster {node.cluster_id}, not {request.cluster_id}.",
        )
    if request.node_id not in (ANY_NODE, node.node_id):
        raise KafkaError(
            ErrorCode.REBOOTSTRAP_REQUIRED,
            f"This is node {node.node_id}, not {request.node_id}.",
        )


@cache
def _served(handlers: ApiHandlers) -> list[ApiVersion]:
    told = []
    for key in sorted(handlers):
        versions = served_versions(key)
        lowest = LOWEST_PRODUCE_TOLD if key is ApiKey.PRODUCE else versions.min
        told.append(ApiVersion(api_key=key, min_version=lowest, max_version=versions.max))
    return told


@cache
def _supported_features(version: int) -> list[SupportedFeatureKey]:
    """Clients before v4 choke on a feature that begins at level 0."""
    return [
        SupportedFeatureKey(name=name, min_version=levels.min, max_version=levels.max)
        for name, levels in sorted(SUPPORTED.items())
        if levels.min > 0 or version >= FIRST_VERSION_WITH_LEVEL_ZERO
    ]
