"""UpdateFeatures (key 57): raise or lower the cluster's feature levels.

v1 kinds of downgrade, and validation only; v2 no results of single features.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", listeners="broker controller"):
    timeout_ms: int32 = field(default=60000)
    feature_updates: list[FeatureUpdateKey] = field()
    validate_only: bool = field("1+")


class FeatureUpdateKey(Struct):
    feature: string = field()
    max_version_level: int16 = field()
    allow_downgrade: bool = field("0")
    upgrade_type: int8 = field("1+", default=1)


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    results: list[UpdatableFeatureResult] = field("0-1", ignorable=True)


class UpdatableFeatureResult(Struct):
    feature: string = field()
    error_code: int16 = field()
    error_message: string | None = field()
