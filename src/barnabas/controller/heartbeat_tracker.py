"""The last contact with every broker. It is not in the log, and ends with the epoch."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from barnabas.metadata.states import BrokerRegistration

NO_EPOCH = -1


@dataclass(slots=True, frozen=True)
class BrokerContact:
    """A heartbeat or registration: the effect of a decision that renews a broker's session."""

    broker_id: int
    broker_epoch: int
    at_ms: int
    metadata_offset: int
    controlled_shutdown_offset: int | None = None


class BrokerHeartbeatTracker:
    """The sessions of the brokers."""

    __slots__ = ("_last", "_last_check_ms", "session_timeout_ms")

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._last: dict[int, BrokerContact] = {}  # in the order of time
        self._last_check_ms: int | None = None

    def begin_sessions(
        self, brokers: Iterable[BrokerRegistration], own_id: int, now_ms: int
    ) -> None:
        """Begins a session for every unfenced broker: it may not know this controller yet.

        For the broker in this controller's own process the session is not valid, since the
        process that registered is gone: it only times out, unless the broker registers again.
        """
        for broker in brokers:
            if not broker.fenced:
                epoch = broker.epoch if broker.broker_id != own_id else NO_EPOCH
                self.touch(BrokerContact(broker.broker_id, epoch, now_ms, metadata_offset=-1))

    def touch(self, contact: BrokerContact) -> None:
        """Renews a session. The offset at which a controlled shutdown began is kept."""
        before = self._last.pop(contact.broker_id, None)
        if (
            before is not None
            and before.broker_epoch == contact.broker_epoch
            and before.controlled_shutdown_offset is not None
        ):
            contact = replace(contact, controlled_shutdown_offset=before.controlled_shutdown_offset)
        self._last[contact.broker_id] = contact

    def expire_sessions(self, now_ms: int) -> Iterator[int]:
        """Ends the sessions that timed out and yields their brokers. Costs what is due.

        It must be called often. If it was not, because this process stood still, heartbeats of
        that time are not read yet: then all sessions begin again.
        """
        last_check_ms, self._last_check_ms = self._last_check_ms, now_ms
        if last_check_ms is not None and now_ms - last_check_ms > self.session_timeout_ms // 2:
            self._last = {key: replace(last, at_ms=now_ms) for key, last in self._last.items()}
        while self._last:
            oldest = next(iter(self._last.values()))
            if now_ms - oldest.at_ms < self.session_timeout_ms:
                return
            del self._last[oldest.broker_id]
            yield oldest.broker_id

    def has_valid_session(self, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether the registered process is unfenced and was in contact recently."""
        last = self._last.get(broker.broker_id)
        return (
            last is not None
            and not broker.fenced
            and last.broker_epoch == broker.epoch
            and now_ms - last.at_ms < self.session_timeout_ms
        )

    def controlled_shutdown_offset(self, broker_id: int) -> int:
        """Returns the offset that all active brokers must have read before this one may stop."""
        last = self._last.get(broker_id)
        return (
            -1
            if last is None or last.controlled_shutdown_offset is None
            else last.controlled_shutdown_offset
        )

    def lowest_active_offset(self, brokers: Mapping[int, BrokerRegistration]) -> int | None:
        """Returns the lowest metadata offset of the active brokers; None if none is active."""
        offsets = [
            last.metadata_offset
            for last in self._last.values()
            if (broker := brokers.get(last.broker_id)) is not None and broker.active
        ]
        return min(offsets, default=None)
