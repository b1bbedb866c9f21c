"""Brokers with ACLs, whose clients are distinguished by their address.

Everyone is User:ANONYMOUS on a PLAINTEXT listener. The administrator and the nodes are at 127.0.0.1
and may do everything; the client at 127.0.0.2 may do what a test grants.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.authorization.cases import EMPTY, GUARDED, Need
from tests.conformance.brokers import Broker
from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.conftest import create_topic, wait_until_ready
from tests.conformance.side_by_side.requests import produce
from tests.conformance.side_by_side.sides import Side
from tests.wait import wait_until

from barnabas.metadata.acls import CLUSTER_NAME
from barnabas.security.authorizer.model import AclOperation, ResourceType
from barnabas.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
}
"""Without ACLs everyone may do everything, so that the administrator can create the first."""

ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
ANONYMOUS = "User:ANONYMOUS"
LITERAL, ALLOW = 3, 3
ANY = 1


class SecuredBroker:
    """A broker with ACLs, as its administrator and as a client see it."""

    def __init__(self, name: str, broker: Broker) -> None:
        self.admin = Side(name, broker, from_host=ADMIN)
        self.client = Side(name, broker, from_host=CLIENT)

    def close(self) -> None:
        self.admin.close()
        self.client.close()

    def prepare(self) -> None:
        """Creates what the requests of the cases use, and the ACLs of the administrator."""
        for topic in (GUARDED, EMPTY, "guarded-deleted", "guarded-removed"):
            create_topic(self.admin, topic)
        self.admin.send(produce(GUARDED, batch(2)), 9)
        wait_until_ready(self.admin)
        self._commit("guarded-group", GUARDED)
        self._commit("guarded-old-group", GUARDED)
        transaction = InitProducerIdRequest(
            transactional_id="guarded-listed-id", transaction_timeout_ms=60_000
        )
        assert self.admin.send(transaction, 4)
        self._join("guarded-consumers")
        everything = [
            (ResourceType.TOPIC, "*"),
            (ResourceType.GROUP, "*"),
            (ResourceType.TRANSACTIONAL_ID, "*"),
            (ResourceType.CLUSTER, CLUSTER_NAME),
        ]
        self.create(
            _creation(resource_type, name, AclOperation.ALL, ADMIN)
            for resource_type, name in everything
        )

    def grant(self, *needs: Need) -> None:
        """Replaces what the client may do."""
        self.revoke()
        self.create(
            _creation(need.resource.type, need.resource.name, need.operation, CLIENT)
            for need in needs
        )

    def revoke(self) -> None:
        """Removes everything that the client may do."""
        self.delete(host=CLIENT)

    def create(self, creations: Iterable[AclCreation]) -> None:
        requested = list(creations)
        if requested:
            response: Any = self.admin.send(CreateAclsRequest(creations=requested), 3)
            assert [result.error_code for result in response.results] == [0] * len(requested)
            last = requested[-1]
            self._wait_until(lambda: self._count(last.principal, last.host) > 0)

    def delete(self, *, principal: str | None = None, host: str | None = None) -> None:
        of_client = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=principal,
            host_filter=host,
            operation=ANY,
            permission_type=ANY,
        )
        self.admin.send(DeleteAclsRequest(filters=[of_client]), 3)
        self._wait_until(lambda: self._count(principal, host) == 0)

    def _wait_until(self, is_applied: Callable[[], bool]) -> None:
        wait_until(is_applied, f"{self.admin.name} decides by the new ACLs", poll_s=0.01)

    def _count(self, principal: str | None, host: str | None) -> int:
        """Returns by how many ACLs of a client the broker decides."""
        of_client = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=principal,
            host_filter=host,
            operation=ANY,
            permission_type=ANY,
        )
        response: Any = self.admin.send(of_client, 3)
        return sum(len(resource.acls) for resource in response.resources)

    def _commit(self, group_id: str, topic: str) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
        response: Any = self.admin.send(OffsetCommitRequest(group_id=group_id, topics=topics), 8)
        assert response.topics[0].partitions[0].error_code == 0

    def _join(self, group_id: str) -> None:
        """Adds a member of a consumer group, to which the topic is assigned."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id="AAAAAAAAAAAAAAAAAAAAAA",
            member_epoch=0,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=[GUARDED],
            topic_partitions=[],
        )
        response: Any = self.admin.send(request, 1)
        assert response.error_code == 0, response


def _creation(
    resource_type: ResourceType, name: str, operation: AclOperation, host: str
) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=ANONYMOUS,
        host=host,
        operation=operation,
        permission_type=ALLOW,
    )
