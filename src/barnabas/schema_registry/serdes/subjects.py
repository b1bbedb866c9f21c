"""Subject name strategies: the subject under which the schema of a message is registered."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from barnabas.serialization import MessageField, SerializationContext, SerializationError

KAFKA_CLUSTER_ID = "subject.name.strategy.kafka.cluster.id"
FALLBACK_TYPE = "subject.name.strategy.fallback.type"
_ANY_CLUSTER = "-"

Strategy = Callable[[SerializationContext | None, Any], str | None]


class SubjectNameStrategyType(StrEnum):
    NONE = "NONE"
    TOPIC = "TOPIC"
    RECORD = "RECORD"
    TOPIC_RECORD = "TOPIC_RECORD"
    ASSOCIATED = "ASSOCIATED"


def topic_subject_name_strategy(
    ctx: SerializationContext | None, record_name: str | None
) -> str | None:
    """`orders-value`: one subject for a topic's values, one for its keys."""
    if ctx is None:
        raise ValueError("the subject is named after the topic: give a SerializationContext")
    return ctx.topic + "-" + ctx.field


def record_subject_name_strategy(
    ctx: SerializationContext | None, record_name: str | None
) -> str | None:
    """`com.shop.Order`: one subject for a record in all topics."""
    return record_name


def topic_record_subject_name_strategy(
    ctx: SerializationContext | None, record_name: str | None
) -> str | None:
    """`orders-com.shop.Order`: one subject for a record in a topic."""
    if ctx is None:
        raise ValueError("the subject is named after the topic: give a SerializationContext")
    return None if record_name is None else f"{ctx.topic}-{record_name}"


def reference_subject_name_strategy(
    ctx: SerializationContext | None, schema_ref: Any
) -> str | None:
    """Returns the name of the reference."""
    return None if schema_ref is None else schema_ref.name


STRATEGIES_BY_TYPE: dict[SubjectNameStrategyType, Strategy] = {
    SubjectNameStrategyType.TOPIC: topic_subject_name_strategy,
    SubjectNameStrategyType.RECORD: record_subject_name_strategy,
    SubjectNameStrategyType.TOPIC_RECORD: topic_record_subject_name_strategy,
}


class AssociatedNameStrategy:
    """Returns the subject that the registry associates with the topic, or else one by topic name.

    A registry without associations is asked once for each topic, and responds with 404.
    """

    def __init__(self, cache_capacity: int = 1000) -> None:
        self._capacity = cache_capacity
        # A plain dict, because every record looks into it.
        self._names: dict[tuple[str, str, str | None], str] = {}
        self._cluster_id: Callable[[], Any] | None = None

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        self._cluster_id = resolver

    def clear_cache(self) -> None:
        self._names.clear()

    def __call__(
        self,
        ctx: SerializationContext | None,
        record_name: str | None,
        schema_registry_client: Any,
        conf: dict[str, Any] | None = None,
    ) -> str | None:
        if ctx is None:
            raise ValueError("the subject is named after the topic: give a SerializationContext")
        key = ctx.topic, ctx.field, record_name
        cached = self._names.get(key)
        if cached is not None:
            return cached
        name = self._find(ctx, record_name, schema_registry_client, conf or {})
        if name is not None:
            if len(self._names) >= self._capacity:
                self._names.clear()
            self._names[key] = name
        return name

    def _find(
        self, ctx: SerializationContext, record_name: str | None, client: Any, conf: dict[str, Any]
    ) -> str | None:
        fallback = _strategy_type(FALLBACK_TYPE, conf.get(FALLBACK_TYPE, "TOPIC"))
        if fallback is SubjectNameStrategyType.ASSOCIATED:
            raise ValueError(f"{FALLBACK_TYPE} cannot be ASSOCIATED itself")
        associated = [] if client is None else self._associated(ctx, client, conf)
        match associated:
            case [only]:
                name: str | None = only.subject
                return name
            case []:
                if fallback is SubjectNameStrategyType.NONE:
                    raise SerializationError(f"no subject is associated with topic {ctx.topic}")
                return STRATEGIES_BY_TYPE[fallback](ctx, record_name)
        subjects = ", ".join(str(item.subject) for item in associated)
        raise SerializationError(f"several subjects are associated with {ctx.topic}: {subjects}")

    def _associated(
        self, ctx: SerializationContext, client: Any, conf: dict[str, Any]
    ) -> list[Any]:
        try:
            associations: list[Any] = client.get_associations_by_resource_name(
                resource_name=ctx.topic,
                resource_namespace=self._cluster(conf),
                resource_type="topic",
                association_types=["key" if ctx.field == MessageField.KEY else "value"],
            )
        except Exception as problem:  # including those of confluent_kafka's client
            if getattr(problem, "http_status_code", None) == 404:
                return []
            raise
        return associations

    def _cluster(self, conf: dict[str, Any]) -> str:
        configured = conf.get(KAFKA_CLUSTER_ID)
        if configured:
            return str(configured)
        if self._cluster_id is None:
            return _ANY_CLUSTER
        try:
            cluster_id = self._cluster_id()
        except Exception as problem:
            raise SerializationError(
                f"the cluster's id is not known yet ({problem}): set {KAFKA_CLUSTER_ID}"
            ) from problem
        if not cluster_id:
            raise SerializationError(f"the cluster has no id: set {KAFKA_CLUSTER_ID}")
        return str(cluster_id)


class SubjectNameResolver:
    """The strategy that a serializer's settings select, with its arguments."""

    def __init__(self, strategy: Any, kind: Any, conf: dict[str, Any] | None, client: Any) -> None:
        self._associated: AssociatedNameStrategy | None = None
        if strategy is None and kind is not None:
            strategy_type = _strategy_type("subject.name.strategy.type", kind)
            if strategy_type is SubjectNameStrategyType.NONE:
                raise ValueError("subject.name.strategy.type cannot be NONE")
            strategy = STRATEGIES_BY_TYPE.get(strategy_type)
        if strategy is None:
            strategy = AssociatedNameStrategy()
        if not callable(strategy):
            raise ValueError("subject.name.strategy must be callable")
        if isinstance(strategy, AssociatedNameStrategy):
            self._associated = strategy
            self.name: Strategy = lambda ctx, record: strategy(ctx, record, client, conf)
        else:
            self.name = strategy

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        if self._associated is not None:
            self._associated.set_cluster_id_resolver(resolver)


def _strategy_type(setting: str, value: Any) -> SubjectNameStrategyType:
    try:
        return SubjectNameStrategyType(str(value).upper())
    except ValueError:
        names = ", ".join(SubjectNameStrategyType)
        raise ValueError(f"{setting} {value!r} must be one of {names}") from None
