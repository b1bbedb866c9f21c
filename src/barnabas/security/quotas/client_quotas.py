"""The quota that applies to a client, and the sensors that measure clients with quotas.

The most specific entry applies. With an entry of a user, all clients of that user share one rate;
with a default entry, each user, or each pair of user and client id, has its own.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.metadata.states import QuotaEntity
from barnabas.security.quotas.entities import CLIENT_ID, USER, QuotaKey
from barnabas.security.quotas.rate import DEFAULT_WINDOW, RateWindow, SampledRate
from barnabas.security.quotas.token_bucket import TokenBucket

MAX_SENSORS: Final = 10_000
"""Clients that are measured at a time; the one that was idle longest is forgotten."""

SENSOR_EXPIRY_MS: Final = 3_600_000

_NOBODY: Final = ""  # no user, or no client id: names are never empty
_DEFAULT: Final = None

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class SensorTags(NamedTuple):
    """Who shares a rate; an empty tag is not part of it."""

    user: str
    client_id: str


class ClientQuota(NamedTuple):
    """The bound that applies to a client, and who it shares it with."""

    bound: float
    tags: SensorTags


class QuotaTable:
    """The quotas of one key, by user and client id."""

    __slots__ = ("_bounds", "_found")

    def __init__(self, quotas: Quotas, key: QuotaKey) -> None:
        self._bounds: dict[tuple[str | None, str | None], float] = {}
        for entity, values in quotas.items():
            if key in values:
                names = dict(entity)
                owner = names.get(USER, _NOBODY), names.get(CLIENT_ID, _NOBODY)
                self._bounds[owner] = values[key]
        self._found: dict[tuple[str, str], ClientQuota | None] = {}

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def find(self, user: str, client_id: str) -> ClientQuota | None:
        """Returns the quota of a client, from the most specific entry."""
        client = (user, client_id)
        if client in self._found:
            return self._found[client]
        if len(self._found) >= MAX_SENSORS:
            self._found.clear()
        quota = self._found[client] = self._search(user, client_id)
        return quota

    def _search(self, user: str, client_id: str) -> ClientQuota | None:
        both, user_alone = SensorTags(user, client_id), SensorTags(user, _NOBODY)
        client_alone = SensorTags(_NOBODY, client_id)
        for owner, tags in (
            ((user, client_id), both),
            ((user, _DEFAULT), both),
            ((user, _NOBODY), user_alone),
            ((_DEFAULT, client_id), both),
            ((_DEFAULT, _DEFAULT), both),
            ((_DEFAULT, _NOBODY), user_alone),
            ((_NOBODY, client_id), client_alone),
            ((_NOBODY, _DEFAULT), client_alone),
        ):
            bound = self._bounds.get(owner)
            if bound is not None:
                return ClientQuota(bound, tags)
        return None


class ClientSensor:
    """What is measured of the clients that share a quota."""

    __slots__ = ("bound", "bucket", "rate", "throttle_time", "used_ms")

    def __init__(self, window: RateWindow) -> None:
        self.rate = SampledRate(window)
        self.bucket = TokenBucket(window)
        self.throttle_time = SampledRate(window)
        self.used_ms = 0
        self.bound = 0.0
        """Of the quota that was measured last."""


class ClientSensors:
    """Sensors by their tags, bounded in number and removed when they are not used."""

    __slots__ = ("_sensors", "_window")

    def __init__(self, window: RateWindow) -> None:
        self._window = window
        self._sensors: dict[SensorTags, ClientSensor] = {}  # idle longest first

    def get(self, tags: SensorTags, now_ms: int) -> ClientSensor:
        sensor = self._sensors.pop(tags, None)
        if sensor is None:
            self.remove_expired(now_ms)
            if len(self._sensors) >= MAX_SENSORS:
                del self._sensors[next(iter(self._sensors))]
            sensor = ClientSensor(self._window)
        sensor.used_ms = now_ms
        self._sensors[tags] = sensor
        return sensor

    def remove_expired(self, now_ms: int) -> None:
        while self._sensors:
            tags, oldest = next(iter(self._sensors.items()))
            if now_ms - oldest.used_ms < SENSOR_EXPIRY_MS:
                return
            del self._sensors[tags]

    def clear(self) -> None:
        self._sensors.clear()

    def __iter__(self) -> Iterator[tuple[SensorTags, ClientSensor]]:
        return iter(self._sensors.items())

    def __len__(self) -> int:
        return len(self._sensors)


class RateQuota:
    """The rates of clients in one respect, such as the bytes that they produce."""

    __slots__ = ("_max_delay_ms", "_table", "_window", "is_enabled", "key", "sensors")

    def __init__(
        self,
        key: QuotaKey,
        window: RateWindow = DEFAULT_WINDOW,
        *,
        max_delay_ms: int | None = None,
    ) -> None:
        self.key = key
        self.is_enabled = False
        """Whether anybody has a quota."""
        self.sensors = ClientSensors(window)
        self._window = window
        self._max_delay_ms = max_delay_ms
        self._table = QuotaTable({}, key)

    def update(self, quotas: Quotas) -> None:
        self._table = QuotaTable(quotas, self.key)
        self.is_enabled = bool(self._table)
        if not self.is_enabled:
            self.sensors.clear()

    def find(self, user: str, client_id: str) -> ClientQuota | None:
        """Returns the quota of a client, or None if it may do anything."""
        return self._table.find(user, client_id)

    def try_record(self, user: str, client_id: str, value: float, now_ms: int) -> bool:
        """Records a value, unless the client would have to wait then. Returns whether it did."""
        quota = self._table.find(user, client_id)
        if quota is None:
            return True
        sensor = self.sensors.get(quota.tags, now_ms)
        sensor.rate.record(value, now_ms)
        if sensor.rate.delay_ms(quota.bound, now_ms) > 0:
            sensor.rate.record(-value, now_ms)
            return False
        sensor.throttle_time.record(0, now_ms)
        return True

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Records what a client has done. Returns how long it has to wait, in ms."""
        quota = self._table.find(user, client_id)
        if quota is None:
            return 0
        sensor = self.sensors.get(quota.tags, now_ms)
        sensor.rate.record(value, now_ms)
        delay_ms = sensor.rate.delay_ms(quota.bound, now_ms)
        if self._max_delay_ms is not None:
            delay_ms = min(delay_ms, self._max_delay_ms)
        sensor.throttle_time.record(delay_ms, now_ms)
        return delay_ms

    def take_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Removes a recorded value, because it was not sent after all."""
        quota = self._table.find(user, client_id)
        if quota is not None:
            self.sensors.get(quota.tags, now_ms).rate.record(-value, now_ms)

    def burst_limit(self, user: str, client_id: str) -> float | None:
        """Returns what a client may do at once without waiting; None without a quota."""
        quota = self._table.find(user, client_id)
        return None if quota is None else quota.bound * self._window.full_samples_ms / 1000


class BucketQuota:
    """The tokens of clients in one respect: the partitions that they create and delete."""

    __slots__ = ("_table", "is_enabled", "key", "sensors")

    def __init__(self, key: QuotaKey, window: RateWindow = DEFAULT_WINDOW) -> None:
        self.key = key
        self.is_enabled = False
        self.sensors = ClientSensors(window)
        self._table = QuotaTable({}, key)

    def update(self, quotas: Quotas) -> None:
        self._table = QuotaTable(quotas, self.key)
        self.is_enabled = bool(self._table)
        if not self.is_enabled:
            self.sensors.clear()

    def find(self, user: str, client_id: str) -> ClientQuota | None:
        return self._table.find(user, client_id)
