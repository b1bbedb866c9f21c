"""DescribeCluster (key 60): the brokers or controllers of the cluster.

v1 which of the two; v2 fenced brokers too.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types: what is described, and which nodes serve it."""


class DescribeClusterRequest(
    Message, api_key=60, versions="0-2", flexible="0+", listeners="broker controller"
):
    include_cluster_authorized_operations: bool = field()
    endpoint_type: int8 = field("1+", default=1)
    include_fenced_brokers: bool = field("2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    endpoint_type: int8 = field("1+", default=1)
    cluster_id: string = field()
    controller_id: int32 = field(default=-1)
    brokers: list[DescribeClusterBroker] = field()
    cluster_authorized_operations: int32 = field(default=-(2**31))


class DescribeClusterBroker(Struct):
    broker_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field(default=None)
    is_fenced: bool = field("2+")
