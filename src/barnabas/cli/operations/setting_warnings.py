"""Warnings of the commands about settings that brokers store and that have no effect."""

import sys
from collections.abc import Mapping

from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.configs import ConfigResource
from barnabas.client.admin.model import ResourceType
from barnabas.client.errors import KafkaException

OWN_SETTING = "barnabas.metrics.listener"
"""A setting of every broker of Barnabas, which Apache Kafka does not have."""


async def warn_of_settings(
    admin: AioAdminClient, resource: ConfigResource, configs: Mapping[str, str]
) -> None:
    """Prints a line to standard error for settings that are unknown or belong to a gap.

    Prints nothing if the brokers are of Apache Kafka, where these settings may have an effect.
    """
    from barnabas.config.changes import ConfigResourceType
    from barnabas.config.warnings import setting_warnings

    warnings = setting_warnings(ConfigResourceType[resource.restype.name], configs)
    if warnings and await _is_barnabas(admin):
        for warning in warnings:
            print(f"WARN {warning}", file=sys.stderr)


async def _is_barnabas(admin: AioAdminClient) -> bool:
    try:
        nodes = (await admin.describe_cluster()).nodes
        resource = ConfigResource(ResourceType.BROKER, str(nodes[0].id))
        return OWN_SETTING in (await admin.describe_configs([resource]))[resource]
    except (KafkaException, IndexError):
        return False
