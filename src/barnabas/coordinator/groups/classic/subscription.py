"""What consumers subscribe to, as they tell their leader."""

from collections.abc import Iterable

from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

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
