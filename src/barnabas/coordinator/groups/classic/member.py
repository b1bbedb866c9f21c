"""A member of a classic group."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

Protocols = dict[str, bytes]
"""What a member can assign by, in the order it prefers: a name, and what it tells the leader."""


class Terms(NamedTuple):
    """What a member joins with, each time anew."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols


@dataclass(slots=True)
class ClassicMember:
    """Who it is, what it offers, what it was assigned, and what it waits for."""

    member_id: str
    instance_id: str | None
    """Set for a static member (KIP-345)."""
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: PendingResponse[JoinGroupResponse] | None = None
    awaiting_sync: PendingResponse[SyncGroupResponse] | None = None
    is_new: bool = False
    """Whether it has not been in any generation yet."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether its silence means nothing, since it waits for us. A new member is not: its
        client may be gone without our noticing, and have come back under another id."""
        return not self.is_new and (
            self.awaiting_join is not None or self.awaiting_sync is not None
        )

    @property
    def terms(self) -> Terms:
        return Terms(self.session_timeout_ms, self.rebalance_timeout_ms, self.protocols)

    def offers(self, protocols: Protocols) -> bool:
        """Whether these are its own, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def metadata(self, protocol: str | None) -> bytes:
        """What it tells the leader under that protocol."""
        return self.protocols.get(protocol, b"") if protocol is not None else b""


def terms_of(request: JoinGroupRequest, api_version: int) -> Terms:
    """As a JoinGroup states them. v0 has one timeout for both; of two protocols with one name
    the first counts."""
    protocols: Protocols = {}
    for each in request.protocols:
        protocols.setdefault(each.name, each.metadata)
    return Terms(
        request.session_timeout_ms,
        request.rebalance_timeout_ms if api_version else request.session_timeout_ms,
        protocols,
    )


def new_member_id(client_id: str, instance_id: str | None) -> str:
    return f"{client_id if instance_id is None else instance_id}-{uuid4()}"


_VERSION_BYTES = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all of them; None if any cannot be read.

    Every version begins with what v0 has, so versions yet to come are read as well.
    """
    read = ConsumerProtocolSubscription.reader(0)
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            parsed, _ = read(subscription, _VERSION_BYTES)
        except ProtocolViolation:
            return None
        topics.update(parsed.topics)
    return frozenset(topics)
