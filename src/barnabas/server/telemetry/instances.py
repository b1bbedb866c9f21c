"""The state of the clients that push metrics: who may ask and push, and when. Without I/O.

get   what to push; at most once in an interval, unless the client has to ask again
push  metrics; the first after a get at any time, then once in an interval
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas.server.telemetry.subscriptions import (
    ClientMetricsSubscriptions,
    MetricsRequest,
    TelemetryClient,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.telemetry import PushTelemetryRequest
from barnabas.wire.records.compression import Codec
from barnabas.wire.uuid import ZERO, random_uuid, to_text

MAX_INSTANCES: Final = 16_384
MIN_EXPIRY_MS: Final = 60_000
_EXPIRY_INTERVALS = 3
_RESERVED_IDS = (ZERO, (1).to_bytes(16, "big"))

ACCEPTED_CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order in which clients should choose one."""

_ASKS_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""Errors after which a client asks at once what to push."""


@dataclass(slots=True)
class TelemetryInstance:
    """One running client, by the id that a broker gave it."""

    instance_id: bytes
    client: TelemetryClient
    request: MetricsRequest
    version: int  # of the subscriptions that `request` is made from
    get_ms: int | None = None  # when it last asked successfully
    push_ms: int | None = None
    last_error: ErrorCode = ErrorCode.NONE
    is_terminating: bool = False
    seen_ms: int = 0

    @property
    def name(self) -> str:
        return to_text(self.instance_id)

    def expires_ms(self) -> int:
        return self.seen_ms + max(MIN_EXPIRY_MS, _EXPIRY_INTERVALS * self.request.interval_ms)


class TelemetryInstances:
    """The clients of one broker, of which those unused for longest are forgotten."""

    def __init__(
        self,
        on_removed: Callable[[bytes], None] = lambda instance_id: None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        *,
        max_bytes: int = 1 << 20,
        max_instances: int = MAX_INSTANCES,
    ) -> None:
        """`on_removed` is called with the id of a client that is forgotten."""
        self.max_bytes = max_bytes
        self._on_removed = on_removed
        self._random_bytes = random_bytes
        self._max_instances = max_instances
        self._instances: OrderedDict[bytes, TelemetryInstance] = OrderedDict()
        self._subscriptions = ClientMetricsSubscriptions()
        self._version = 0

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance_id: bytes) -> bool:
        return instance_id in self._instances

    def update(self, subscriptions: ClientMetricsSubscriptions) -> None:
        """Clients get new subscriptions when they ask or push next."""
        self._subscriptions = subscriptions
        self._version += 1

    def get(self, instance_id: bytes, client: TelemetryClient, now_ms: int) -> TelemetryInstance:
        """Returns what a client pushes. Raises KafkaError if it asks too early."""
        if instance_id == ZERO:
            instance_id = random_uuid(self._random_bytes)
        instance, is_changed = self._use(instance_id, client, now_ms)
        last_ms = max(
            (time_ms for time_ms in (instance.get_ms, instance.push_ms) if time_ms is not None),
            default=None,
        )
        is_early = last_ms is not None and now_ms - last_ms < instance.request.interval_ms
        if is_early and not is_changed and instance.last_error not in _ASKS_AGAIN:
            raise self._failure(
                instance, ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client asks too early."
            )
        instance.get_ms = now_ms
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self, request: PushTelemetryRequest, client: TelemetryClient, now_ms: int
    ) -> TelemetryInstance:
        """Returns the client whose metrics may be read. Raises KafkaError."""
        instance_id = bytes(request.client_instance_id)
        if instance_id in _RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The client instance id is reserved.")
        instance, _ = self._use(instance_id, client, now_ms)
        if instance.is_terminating:
            raise self._failure(
                instance, ErrorCode.INVALID_REQUEST, "The client has pushed its last metrics."
            )
        if self._is_early_push(instance, now_ms) and not request.terminating:
            raise self._failure(
                instance, ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client pushes too early."
            )
        instance.push_ms = now_ms
        if request.subscription_id != instance.request.id:
            raise self._failure(
                instance, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "The subscription has changed."
            )
        if request.compression_type not in (Codec.NONE, *ACCEPTED_CODECS):
            raise self._failure(
                instance, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "The compression is unknown."
            )
        if len(request.metrics) > self.max_bytes:
            raise self._failure(
                instance,
                ErrorCode.TELEMETRY_TOO_LARGE,
                f"The metrics have more than {self.max_bytes} bytes (telemetry.max.bytes).",
            )
        instance.last_error = ErrorCode.NONE
        instance.is_terminating = request.terminating
        return instance

    def remove(self, instance_id: bytes) -> None:
        """Forgets a client, which has disconnected."""
        if self._instances.pop(instance_id, None) is not None:
            self._on_removed(instance_id)

    def remove_expired(self, now_ms: int) -> None:
        """Forgets clients that have not been seen for a minute, or for three intervals."""
        expired = [
            instance_id
            for instance_id, instance in self._instances.items()
            if now_ms >= instance.expires_ms()
        ]
        for instance_id in expired:
            self.remove(instance_id)

    def _use(
        self, instance_id: bytes, client: TelemetryClient, now_ms: int
    ) -> tuple[TelemetryInstance, bool]:
        """Returns the instance, and whether its subscriptions have changed."""
        instance = self._instances.get(instance_id)
        if instance is None or instance.version != self._version or instance.client != client:
            seed = int.from_bytes(instance_id[:4], "big") ^ int.from_bytes(instance_id[12:], "big")
            wanted = self._subscriptions.request_for(to_text(instance_id), client, seed)
        if instance is None:
            instance = TelemetryInstance(instance_id, client, wanted, self._version)
            self._instances[instance_id] = instance
            if len(self._instances) > self._max_instances:
                self.remove(next(iter(self._instances)))
            is_changed = True
        elif instance.version != self._version or instance.client != client:
            is_changed = wanted != instance.request
            instance.client, instance.request = client, wanted
            instance.version = self._version
        else:
            is_changed = False
        instance.seen_ms = now_ms
        self._instances.move_to_end(instance_id)
        return instance, is_changed

    def _is_early_push(self, instance: TelemetryInstance, now_ms: int) -> bool:
        if instance.push_ms is None:
            return False
        if instance.get_ms is not None and instance.get_ms > instance.push_ms:
            return False  # the first after a get
        return now_ms - instance.push_ms < instance.request.interval_ms

    def _failure(self, instance: TelemetryInstance, code: ErrorCode, message: str) -> KafkaError:
        instance.last_error = code
        return KafkaError(code, message)
