"""Subject name strategies."""

from typing import Any

import pytest
from tests.schema_registry.serdes.fake_client import FakeRegistryClient

from barnabas.schema_registry import (
    Association,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from barnabas.schema_registry.serdes.subjects import (
    FALLBACK_TYPE,
    KAFKA_CLUSTER_ID,
    AssociatedNameStrategy,
    SubjectNameResolver,
)
from barnabas.serialization import MessageField, SerializationContext, SerializationError

VALUE = SerializationContext("orders", MessageField.VALUE)
KEY = SerializationContext("orders", MessageField.KEY)


def test_the_strategies_name_subjects_as_confluents_do() -> None:
    assert topic_subject_name_strategy(VALUE, "shop.Order") == "orders-value"
    assert topic_subject_name_strategy(KEY, "shop.Order") == "orders-key"
    assert record_subject_name_strategy(None, "shop.Order") == "shop.Order"
    assert topic_record_subject_name_strategy(VALUE, "shop.Order") == "orders-shop.Order"
    assert topic_record_subject_name_strategy(VALUE, None) is None
    with pytest.raises(ValueError, match="give a SerializationContext"):
        topic_subject_name_strategy(None, "shop.Order")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (None, "orders-value"),
        ("TOPIC", "orders-value"),
        ("record", "R"),
        ("TOPIC_RECORD", "orders-R"),
    ],
)
def test_a_strategy_can_be_selected_by_type(
    kind: str | None, name: str, client: FakeRegistryClient
) -> None:
    assert SubjectNameResolver(None, kind, None, client).name(VALUE, "R") == name


class Associating(FakeRegistryClient):
    def __init__(self, *subjects: str) -> None:
        super().__init__()
        self.subjects = subjects
        self.wanted: list[dict[str, Any]] = []

    def get_associations_by_resource_name(self, **requested: Any) -> list[Any]:
        self.wanted.append(requested)
        return [Association(subject=subject) for subject in self.subjects]


def test_an_associated_subject_is_requested_once() -> None:
    client = Associating("sales")
    strategy = AssociatedNameStrategy()
    strategy.set_cluster_id_resolver(lambda: "cluster-1")
    assert [strategy(KEY, None, client) for _ in range(3)] == ["sales"] * 3
    (requested,) = client.wanted
    assert requested["resource_namespace"] == "cluster-1"
    assert requested["association_types"] == ["key"]
    strategy.clear_cache()
    strategy(KEY, None, client, {KAFKA_CLUSTER_ID: "cluster-1"})
    assert client.wanted[-1]["resource_namespace"] == "cluster-1"


def test_without_an_association_the_fallback_strategy_decides(client: FakeRegistryClient) -> None:
    strategy = AssociatedNameStrategy()
    assert strategy(VALUE, "R", client, {FALLBACK_TYPE: "RECORD"}) == "R"
    with pytest.raises(SerializationError, match="no subject is associated with topic orders"):
        AssociatedNameStrategy()(VALUE, "R", client, {FALLBACK_TYPE: "NONE"})
    with pytest.raises(SerializationError, match=r"several subjects .* orders: a, b"):
        AssociatedNameStrategy()(VALUE, "R", Associating("a", "b"))


def test_an_invalid_strategy_is_rejected(client: FakeRegistryClient) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        SubjectNameResolver(None, "SIDEWAYS", None, client)
    with pytest.raises(ValueError, match="cannot be NONE"):
        SubjectNameResolver(None, "NONE", None, client)
    with pytest.raises(ValueError, match="must be callable"):
        SubjectNameResolver("TOPIC", None, None, client)
