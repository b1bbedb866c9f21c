"""Trouble from a seed: which requests fail, how, and in what order.

Each API has its own random numbers, so that what befalls its n-th request depends on the seed
alone. A storm blows itself out: every API has so many troubles in it and no more.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.testing import Broker

LATE_S = 0.6
"""Longer than a client waits for a response in these tests."""

HURRIED: Mapping[str, Any] = {
    "socket.timeout.ms": 300,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 40,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 40,
}
"""Settings with which clients recover in milliseconds."""

_LEADERS = ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR")
_COORDINATORS = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")

PRODUCING: Mapping[str, tuple[str, ...]] = {
    "Produce": (*_LEADERS, "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE"),
    "Metadata": ("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"),
    "InitProducerId": _COORDINATORS,
}
CONSUMING: Mapping[str, tuple[str, ...]] = {
    "Fetch": (
        *_LEADERS,
        "UNKNOWN_LEADER_EPOCH",
        "FETCH_SESSION_ID_NOT_FOUND",
        "OFFSET_NOT_AVAILABLE",
    ),
    "ListOffsets": (*_LEADERS, "LEADER_NOT_AVAILABLE"),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "JoinGroup": _COORDINATORS,
    "SyncGroup": (*_COORDINATORS, "REBALANCE_IN_PROGRESS"),
    "Heartbeat": (*_COORDINATORS, "REBALANCE_IN_PROGRESS"),
    "ConsumerGroupHeartbeat": _COORDINATORS,
    "OffsetCommit": (*_COORDINATORS, "REQUEST_TIMED_OUT"),
    "OffsetFetch": _COORDINATORS,
    "LeaveGroup": _COORDINATORS,
}
TRANSACTING: Mapping[str, tuple[str, ...]] = {
    **PRODUCING,
    "InitProducerId": (*_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "AddPartitionsToTxn": (*_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "AddOffsetsToTxn": (*_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "TxnOffsetCommit": (*_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "EndTxn": (*_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
}


class Storm:
    """Over one broker, until it is spent or `clear` is called on the broker's faults."""

    def __init__(
        self,
        broker: Broker,
        seed: int,
        apis: Mapping[str, tuple[str, ...]],
        *,
        troubles: int = 8,
    ) -> None:
        often = random.Random(seed).choice((0.1, 0.3, 0.6))
        for name, errors in apis.items():
            befalls = _Befalling(random.Random(f"{seed} {name}"), often, troubles)
            faults = broker.faults
            # The first order draws for the request; each takes it if its number came.
            for number, error in enumerate(errors):
                faults.fail(name, error, when=befalls.draw if number == 0 else befalls.is_(number))
            count = len(errors)
            faults.drop(name, when=befalls.is_(count))
            faults.drop(name, after=True, when=befalls.is_(count + 1))
            faults.delay(name, LATE_S, when=befalls.is_(count + 2))
            befalls.kinds = count + 3


class _Befalling:
    """What becomes of each request of one API: a kind of trouble by its number, or none."""

    def __init__(self, numbers: random.Random, often: float, troubles: int) -> None:
        self.kinds = 0
        self._numbers = numbers
        self._often = often
        self._left = troubles
        self._drawn: int | None = None

    def draw(self, _: object) -> bool:
        """Decide about a request that has come; whether the first kind befalls it."""
        self._drawn = None
        if self._left and self._numbers.random() < self._often:
            self._left -= 1
            self._drawn = self._numbers.randrange(self.kinds)
        return self._drawn == 0

    def is_(self, number: int) -> Callable[[object], bool]:
        return lambda _: self._drawn == number
