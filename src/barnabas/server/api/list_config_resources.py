"""ListConfigResources (key 74): the resources that have settings of their own.

v0 client metrics alone; v1 filter by type. All topics and
unfenced brokers have settings; groups and client metrics are listed if settings were set.
"""

from collections.abc import Iterable

from barnabas.config import ConfigResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


async def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    context.require_allowed(AclOperation.DESCRIBE_CONFIGS, CLUSTER)
    resource_types: Iterable[int] = dict.fromkeys(request.resource_types) or ConfigResourceType
    if context.api_version == 0:
        resource_types = (ConfigResourceType.CLIENT_METRICS,)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in resource_types
            for name in _names(resource_type, context.broker.image)
        ]
    )


def _names(resource_type: int, image: MetadataImage) -> list[str]:
    match resource_type:
        case ConfigResourceType.TOPIC:
            return [topic.name for topic in image.topics]
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(broker.broker_id) for broker in image.brokers.values() if not broker.fenced]
        case ConfigResourceType.CLIENT_METRICS | ConfigResourceType.GROUP:
            return [name for owner_type, name in image.configs if owner_type == resource_type]
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, f"Resource type {resource_type} has no settings"
    )
