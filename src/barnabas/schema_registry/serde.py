"""Subject name strategies and schema ids, for user-defined strategies."""

from barnabas.schema_registry.serdes.framing import SchemaId
from barnabas.schema_registry.serdes.subjects import (
    FALLBACK_TYPE,
    KAFKA_CLUSTER_ID,
    AssociatedNameStrategy,
    SubjectNameStrategyType,
)
from barnabas.schema_registry.serdes.subjects import STRATEGIES_BY_TYPE as STRATEGY_TYPE_MAP

__all__ = [
    "FALLBACK_TYPE",
    "KAFKA_CLUSTER_ID",
    "STRATEGY_TYPE_MAP",
    "AssociatedNameStrategy",
    "SchemaId",
    "SubjectNameStrategyType",
]
