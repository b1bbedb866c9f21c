"""AlterClientQuotas: decisions and errors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controller.conftest import World, broker

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)

Entity = dict[str, str | None]
ALICE: Entity = {"user": "alice"}


def entry(entity: Entity, **quotas: float | None) -> RequestEntryData:
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in quotas.items()
        ],
    )


def alter(world: World, *entries: RequestEntryData, validate_only: bool = False) -> list[ErrorCode]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    response: Any = world.decide(request).response
    assert [result.entity for result in response.entries] == [entry.entity for entry in entries]
    return [ErrorCode.of(result.error_code) for result in response.entries]


@pytest.mark.parametrize(
    ("entity", "quotas"),
    [
        ({"user": "alice"}, {"producer_byte_rate": 1024.0, "consumer_byte_rate": 1.0}),
        ({"user": None}, {"request_percentage": 0.5}),
        ({"client-id": "app"}, {"controller_mutation_rate": 0.1}),
        ({"user": "alice", "client-id": None}, {"producer_byte_rate": 2.0**60}),
        ({"client-id": "app", "user": "alice"}, {"producer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0}),
        ({"ip": "::1"}, {"connection_creation_rate": 5.0}),
        ({"ip": None}, {"connection_creation_rate": 2.0**31 - 1}),
    ],
)
def test_quotas_of_every_entity_are_set_and_removed(
    one_broker: World, entity: Entity, quotas: dict[str, float]
) -> None:
    key = tuple(sorted(entity.items(), key=lambda part: part[0]))
    assert alter(one_broker, entry(entity, **quotas)) == [ErrorCode.NONE]
    assert one_broker.image.quotas == {key: quotas}
    assert alter(one_broker, entry(entity, **dict.fromkeys(quotas))) == [ErrorCode.NONE]
    assert one_broker.image.quotas == {}


@pytest.mark.parametrize(
    "invalid",
    [
        entry({}, producer_byte_rate=1.0),
        entry({"group": "g"}, producer_byte_rate=1.0),
        entry({"user": ""}, producer_byte_rate=1.0),
        entry({"ip": "10.0.0.1", "user": "alice"}, connection_creation_rate=1.0),
        entry({"ip": "not.an.address"}, connection_creation_rate=1.0),
        entry({"user": "bob"}, connection_creation_rate=1.0),
        entry({"ip": "10.0.0.1"}, producer_byte_rate=1.0),
        entry({"user": "bob"}, unknown_rate=1.0),
        entry({"user": "bob"}, producer_byte_rate=0.0),
        entry({"user": "bob"}, producer_byte_rate=-1.0),
        entry({"user": "bob"}, producer_byte_rate=1.5),
        entry({"user": "bob"}, producer_byte_rate=2.0**63),
        entry({"user": "bob"}, producer_byte_rate=float("inf")),
        entry({"user": "bob"}, request_percentage=float("nan")),
        entry({"ip": "10.0.0.1"}, connection_creation_rate=2.0**31),
        RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name="bob")],
            ops=[OpData(key="producer_byte_rate", value=number) for number in (1.0, 2.0)],
        ),
        RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=name) for name in ("bob", None)],
            ops=[OpData(key="producer_byte_rate", value=1.0)],
        ),
    ],
)
def test_an_invalid_entry_fails_alone(one_broker: World, invalid: RequestEntryData) -> None:
    valid = entry(ALICE, producer_byte_rate=1.0)
    assert alter(one_broker, invalid, valid) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert list(one_broker.image.quotas) == [(("user", "alice"),)]


def test_an_entity_is_changed_once_in_a_request(one_broker: World) -> None:
    twice = [
        entry({"user": "a", "client-id": "b"}, producer_byte_rate=1.0),
        entry({"client-id": "b", "user": "a"}, consumer_byte_rate=1.0),
    ]
    assert alter(one_broker, *twice) == [ErrorCode.INVALID_REQUEST] * 2
    assert one_broker.image.quotas == {}


def test_nothing_is_written_without_a_change_or_to_validate(one_broker: World) -> None:
    quota = entry(ALICE, producer_byte_rate=1.0, request_percentage=None)
    assert alter(one_broker, quota, validate_only=True) == [ErrorCode.NONE]
    assert one_broker.image.quotas == {}
    alter(one_broker, quota)
    offset = one_broker.offset
    assert alter(one_broker, quota) == [ErrorCode.NONE]
    assert one_broker.offset == offset


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "request_percentage"]),
            st.none() | st.integers(1, 10**12),
        )
    )
)
def test_the_image_has_the_last_value_of_each_quota(changes: list[tuple[str, int | None]]) -> None:
    world = World(broker(1))
    expected: dict[str, float] = {}
    for key, value in changes:
        assert alter(world, entry(ALICE, **{key: value})) == [ErrorCode.NONE]
        if value is None:
            expected.pop(key, None)
        else:
            expected[key] = value
    assert world.image.quotas == ({(("user", "alice"),): expected} if expected else {})
