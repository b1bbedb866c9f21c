"""A member of a classic group."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.classic_groups import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

Protocols = dict[str, bytes]
"""The protocols that a member supports, in its order of preference: names, and the metadata that
the member sends to the leader."""

_VERSION_BYTES = 2


class JoinOptions(NamedTuple):
    """What a member sends with each JoinGroup."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    instance_id: str | None
    """Set for a static member (KIP-345)."""
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    pending_join: PendingResponse[JoinGroupResponse] | None = None
    pending_sync: PendingResponse[SyncGroupResponse] | None = None
    is_new: bool = False
    """Whether it has not been in any generation yet."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether it sends no heartbeats because it waits for a response. A new member does not
        count: its client may have disconnected and joined again under another id."""
        return not self.is_new and (self.pending_join is not None or self.pending_sync is not None)

    @property
    def join_options(self) -> JoinOptions:
        return JoinOptions(self.session_timeout_ms, self.rebalance_timeout_ms, self.protocols)

    def has_protocols(self, protocols: Protocols) -> bool:
        """Whether its protocols are these, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def metadata(self, protocol: str | None) -> bytes:
        """Returns what it sends to the leader under that protocol."""
        return self.protocols.get(protocol, b"") if protocol is not None else b""


def join_options_of(request: JoinGroupRequest, api_version: int) -> JoinOptions:
    """Returns the options of a JoinGroup. v0 has one timeout for both; of two protocols with the
    same name the first one is used."""
    protocols: Protocols = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    return JoinOptions(
        request.session_timeout_ms,
        request.rebalance_timeout_ms if api_version else request.session_timeout_ms,
        protocols,
    )


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Returns the topics of all subscriptions, or None if one cannot be read.

    Every version begins with the fields of v0, so future versions can be read as well.
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
