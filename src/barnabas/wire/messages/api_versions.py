"""ApiVersions (key 18): the APIs of a broker and their versions.

v1 throttling; v3 flexible, the client's name and version, features; v4 features with minimum
version 0; v5 the cluster and node that the client expects (KIP-1242). The response header always
has version 0, and a version unknown to the broker gets a v0 response (KIP-511).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class ApiVersionsRequest(
    Message, api_key=18, versions="0-5", flexible="3+", listeners="broker controller"
):
    client_software_name: string = field("3+", ignorable=True)
    client_software_version: string = field("3+", ignorable=True)
    cluster_id: string | None = field("5+", default=None, ignorable=True)
    node_id: int32 = field("5+", default=-1, ignorable=True)


class ApiVersionsResponse(Message, api_key=18, versions="0-5", flexible="3+"):
    error_code: int16 = field()
    api_keys: list[ApiVersion] = field()
    throttle_time_ms: int32 = field("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field("3+", tag=0, ignorable=True)
    finalized_features_epoch: int64 = field("3+", tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field("3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field("3+", tag=3, ignorable=True)


class ApiVersion(Struct):
    api_key: int16 = field()
    min_version: int16 = field()
    max_version: int16 = field()


class SupportedFeatureKey(Struct):
    name: string = field()
    min_version: int16 = field()
    max_version: int16 = field()


class FinalizedFeatureKey(Struct):
    name: string = field()
    max_version_level: int16 = field()
    min_version_level: int16 = field()
