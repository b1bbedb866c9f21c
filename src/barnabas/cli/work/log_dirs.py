"""The log directories of brokers, and what lies in them."""

from collections.abc import Sequence

from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.log_dirs import LogDirDescription


async def live_brokers(admin: AioAdminClient) -> list[int]:
    return sorted(node.id for node in (await admin.describe_cluster()).nodes)


async def describe_log_dirs(
    admin: AioAdminClient, brokers: Sequence[int]
) -> dict[int, dict[str, LogDirDescription]]:
    """By broker and path."""
    return (await admin.describe_log_dirs(list(brokers))).all()
