"""`AioAdminClient`: everything an administrator can ask of a cluster, as coroutines.

Each subject has a file of its own with its values and its calls; this class is all of them.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from barnabas.client.admin.acls import AclCalls
from barnabas.client.admin.cluster import ClusterCalls
from barnabas.client.admin.configs import ConfigCalls
from barnabas.client.admin.elections import ElectionCalls
from barnabas.client.admin.features import FeatureCalls
from barnabas.client.admin.group_metadata import GroupMetadataCalls
from barnabas.client.admin.group_offsets import GroupOffsetCalls
from barnabas.client.admin.groups import GroupCalls
from barnabas.client.admin.log_dirs import LogDirCalls
from barnabas.client.admin.metadata import MetadataCalls
from barnabas.client.admin.offsets import OffsetCalls
from barnabas.client.admin.partitions import PartitionCalls
from barnabas.client.admin.prepared import PreparedCalls
from barnabas.client.admin.producers import ProducerCalls
from barnabas.client.admin.quorum import QuorumCalls
from barnabas.client.admin.quotas import QuotaCalls
from barnabas.client.admin.reassignments import ReassignmentCalls
from barnabas.client.admin.records import RecordCalls
from barnabas.client.admin.routes import Routes
from barnabas.client.admin.scram import ScramCalls
from barnabas.client.admin.topics import TopicCalls
from barnabas.client.admin.transactions import TransactionCalls
from barnabas.client.cluster.cluster import Cluster, ignore
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
    GroupOffsetCalls,
    OffsetCalls,
    RecordCalls,
    ElectionCalls,
    ReassignmentCalls,
    LogDirCalls,
    TransactionCalls,
    PreparedCalls,
    ProducerCalls,
    FeatureCalls,
    QuorumCalls,
    QuotaCalls,
    AclCalls,
    ScramCalls,
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
        self._cluster = Cluster(
            settings,
            told or settings.error_cb or ignore,
            controllers=settings.bootstrap_controllers,
        )
        super().__init__(Routes(self._cluster, settings))

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as somebody else, from the next connection on."""
        self._cluster.set_sasl_credentials(username, password)

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
