"""BrokerRegistration (key 62): a broker announces itself to the controller.

v1 migrating from ZooKeeper; v2 log directories; v3 the previous broker epoch; v4 features with
minimum version 0.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uint16, uuid


class BrokerRegistrationRequest(
    Message, api_key=62, versions="0-4", flexible="0+", listeners="controller"
):
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


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    broker_epoch: int64 = field(default=-1)
