"""The APIs of broker and controller registrations and heartbeats.

BrokerRegistration (key 62): a broker registers with the controller.
v1 migrating from ZooKeeper; v2 log directories; v3 the previous broker epoch; v4 features with
minimum version 0.

BrokerHeartbeat (key 63): a broker renews its session and requests state changes.
v1 offline log directories; v2 cordoned log directories (KIP-1066).

UnregisterBroker (key 64): remove the registration of a broker.

ControllerRegistration (key 70): a controller registers with the active controller.

UnregisterController (key 94): remove the registration of a controller.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uint16, uuid


class BrokerRegistrationRequest(Message, api_key=62, versions="0-4", listeners="controller"):
    broker_id: int32 = field()
    cluster_id: string = field()
    incarnation_id: uuid = field()
    listeners: list[Listener] = field()
    features: list[Feature] = field()
    rack: string | None = field()
    is_migrating_zk_broker: bool = field("1+")
    log_dirs: list[uuid] = field("2+", ignorable=True)
    previous_broker_epoch: int64 = field("3+", default=-1, ignorable=True)


class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


class Feature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    broker_epoch: int64 = field(default=-1)


class BrokerHeartbeatRequest(Message, api_key=63, versions="0-2", listeners="controller"):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    current_metadata_offset: int64 = field()
    want_fence: bool = field()
    want_shut_down: bool = field()
    offline_log_dirs: list[uuid] = field("1+", tag=0)
    cordoned_log_dirs: list[uuid] | None = field("2+", tag=1, default=None)


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    is_caught_up: bool = field()
    is_fenced: bool = field(default=True)
    should_shut_down: bool = field()


class UnregisterBrokerRequest(Message, api_key=64, versions="0", listeners="broker controller"):
    broker_id: int32 = field()


class UnregisterBrokerResponse(Message, api_key=64, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


class ControllerRegistrationRequest(Message, api_key=70, versions="0", listeners="controller"):
    controller_id: int32 = field()
    incarnation_id: uuid = field()
    zk_migration_ready: bool = field()
    listeners: list[Listener] = field()
    features: list[Feature] = field()


class ControllerRegistrationResponse(Message, api_key=70, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


class UnregisterControllerRequest(Message, api_key=94, versions="0", listeners="broker controller"):
    controller_id: int32 = field()


class UnregisterControllerResponse(Message, api_key=94, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
