"""`AioAdminClient`: everything an administrator can ask of a cluster, as coroutines.

Each subject has a file of its own with its values and its calls; this class is all of them.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from barnabas.client.admin.cluster import ClusterCalls
from barnabas.client.admin.configs import ConfigCalls
from barnabas.client.admin.group_metadata import GroupMetadataCalls
from barnabas.client.admin.groups import GroupCalls
from barnabas.client.admin.metadata import MetadataCalls
from barnabas.client.admin.partitions import PartitionCalls
from barnabas.client.admin.routes import Routes
from barnabas.client.admin.topics import TopicCalls
from barnabas.client.cluster import Cluster
from barnabas.client.errors import KafkaError
from barnabas.client.settings import AdminSettings, admin_settings


class AioAdminClient(
    MetadataCalls,
    TopicCalls,
    PartitionCalls,
    ConfigCalls,
    ClusterCalls,
    GroupMetadataCalls,
    GroupCalls,
):
    """An admin client on the running loop.

    Calls about several things give `Results`: one outcome for each of them.
    """

    def __init__(
        self,
        conf: Mapping[str, Any] | AdminSettings,
        told: Callable[[KafkaError], None] | None = None,
    ) -> None:
        settings = conf if isinstance(conf, AdminSettings) else admin_settings(dict(conf))
        self._cluster = Cluster(settings, told or settings.error_cb or _ignore)
        super().__init__(Routes(self._cluster, settings))

    async def close(self) -> None:
        """Hang up; calls that are under way fail."""
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _ignore(_: KafkaError) -> None:
    """Nobody wants to hear of it."""
