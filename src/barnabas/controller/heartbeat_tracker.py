"""When each broker was last heard from. It is not in the log, and dies with this controller."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from barnabas.metadata.states import BrokerRegistration

NO_EPOCH = -1


@dataclass(slots=True, frozen=True)
class BrokerContact:
    """One sign of life of a broker."""

    broker_id: int
    broker_epoch: int
    at_ms: int
    metadata_offset: int
    controlled_shutdown_offset: int | None = None


class BrokerHeartbeatTracker:
    """The last sign of life of every broker that this controller has heard from."""

    __slots__ = ("_last", "_looked_ms", "session_timeout_ms")

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._last: dict[int, BrokerContact] = {}  # in the order of time
        self._looked_ms: int | None = None

    def begin_sessions(
        self, brokers: Iterable[BrokerRegistration], own_id: int, now_ms: int
    ) -> None:
        """Begin a session for every broker that is let in: it may not know this controller yet.

        That of this controller's own process only ends, unless the broker registers: what the
        process before it had registered is gone.
        """
        for broker in brokers:
            if not broker.fenced:
                epoch = broker.epoch if broker.broker_id != own_id else NO_EPOCH
                self.touch(BrokerContact(broker.broker_id, epoch, now_ms, metadata_offset=-1))

    def touch(self, contact: BrokerContact) -> None:
        """Note a sign of life. The offset at which a shutdown began is kept while it lasts."""
        before = self._last.pop(contact.broker_id, None)
        if (
            before is not None
            and before.broker_epoch == contact.broker_epoch
            and before.controlled_shutdown_offset is not None
        ):
            contact = replace(contact, controlled_shutdown_offset=before.controlled_shutdown_offset)
        self._last[contact.broker_id] = contact

    def expire_sessions(self, now_ms: int) -> Iterator[int]:
        """The brokers that were silent for too long; each is told once. Costs what is due.

        To be asked often. If that could not be, for this process stood still itself, what others
        said meanwhile is yet to be read: their time begins again.
        """
        looked_ms, self._looked_ms = self._looked_ms, now_ms
        if looked_ms is not None and now_ms - looked_ms > self.session_timeout_ms // 2:
            self._last = {key: replace(last, at_ms=now_ms) for key, last in self._last.items()}
        while self._last:
            longest_silent = next(iter(self._last.values()))
            if now_ms - longest_silent.at_ms < self.session_timeout_ms:
                return
            del self._last[longest_silent.broker_id]
            yield longest_silent.broker_id

    def has_valid_session(self, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether that registration counts as running: let in, and heard from of late."""
        last = self._last.get(broker.broker_id)
        return (
            last is not None
            and not broker.fenced
            and last.broker_epoch == broker.epoch
            and now_ms - last.at_ms < self.session_timeout_ms
        )

    def controlled_shutdown_offset(self, broker_id: int) -> int:
        """The offset from which the others must have read before that broker may stop."""
        last = self._last.get(broker_id)
        return (
            -1
            if last is None or last.controlled_shutdown_offset is None
            else last.controlled_shutdown_offset
        )

    def lowest_active_offset(self, brokers: Mapping[int, BrokerRegistration]) -> int | None:
        """How far the slowest active broker has read the metadata; None if none is active."""
        offsets = [
            last.metadata_offset
            for last in self._last.values()
            if (broker := brokers.get(last.broker_id)) is not None and broker.active
        ]
        return min(offsets, default=None)
