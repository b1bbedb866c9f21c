"""Delegation tokens are created, renewed, expired and removed as Kafka does it."""

import hmac
from typing import Any

import pytest
from tests.controller.conftest import NOW_MS, World, broker
from tests.controller.harness import ControllerHarness

from barnabas.controller import delegation_tokens
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import DELEGATION_TOKENS_FROM, METADATA_VERSION
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.wire.messages.metadata_records import DelegationTokenRecord, FeatureLevelRecord

ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SECRET = {"delegation_token_secret_key": "the key of all nodes"}


@pytest.fixture
def world() -> World:
    world = World(broker(1), **SECRET)
    world.principal = ALICE
    return world


def create(world: World, **fields: Any) -> Any:
    renewers = [CreatableRenewers(principal_type="User", principal_name="bob")]
    request = CreateDelegationTokenRequest(**{"renewers": renewers, **fields})
    return world.decide(request).response


def renew(world: World, token_hmac: bytes, period_ms: int = -1) -> Any:
    request = RenewDelegationTokenRequest(hmac=token_hmac, renew_period_ms=period_ms)
    return world.decide(request).response.expiry_timestamp_ms  # type: ignore[attr-defined]


def expire(world: World, token_hmac: bytes, period_ms: int = -1) -> Any:
    request = ExpireDelegationTokenRequest(hmac=token_hmac, expiry_time_period_ms=period_ms)
    return world.decide(request).response.expiry_timestamp_ms  # type: ignore[attr-defined]


def error_of(call: Any, *arguments: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call(*arguments, **fields)
    return raised.value.code


def test_a_token_lives_a_day_and_can_be_renewed_for_a_week(world: World) -> None:
    created = create(world)
    (token,) = world.image.tokens.values()
    assert token.token_id == created.token_id
    assert (token.owner, token.requester, token.renewers) == (
        "User:alice",
        "User:alice",
        ("User:bob",),
    )
    assert created.issue_timestamp_ms == token.issue_timestamp_ms == NOW_MS
    assert created.expiry_timestamp_ms == token.expiration_timestamp_ms == NOW_MS + DAY_MS
    assert created.max_timestamp_ms == token.max_timestamp_ms == NOW_MS + 7 * DAY_MS
    assert len(created.token_id) == 22
    key = SECRET["delegation_token_secret_key"].encode()
    assert created.hmac == hmac.digest(key, created.token_id.encode(), "sha512")


@pytest.mark.parametrize(
    ("requested_ms", "max_ms", "expiry_ms"),
    [
        (-1, 7 * DAY_MS, DAY_MS),
        (0, 7 * DAY_MS, DAY_MS),
        (HOUR_MS, HOUR_MS, HOUR_MS),
        (2 * DAY_MS, 2 * DAY_MS, DAY_MS),
        (2**63 - 1, 7 * DAY_MS, DAY_MS),
    ],
)
def test_a_request_can_only_shorten_the_life_of_a_token(
    world: World, requested_ms: int, max_ms: int, expiry_ms: int
) -> None:
    created = create(world, max_lifetime_ms=requested_ms)
    assert created.max_timestamp_ms == NOW_MS + max_ms
    assert created.expiry_timestamp_ms == NOW_MS + expiry_ms


def test_a_token_of_another_owner_names_its_requester(world: World) -> None:
    created = create(world, owner_principal_type="User", owner_principal_name="carol")
    (token,) = world.image.tokens.values()
    assert (token.owner, token.requester) == ("User:carol", "User:alice")
    assert (created.principal_name, created.token_requester_principal_name) == ("carol", "alice")


def test_only_users_can_be_renewers(world: World) -> None:
    renewers = [CreatableRenewers(principal_type="Group", principal_name="staff")]
    assert error_of(create, world, renewers=renewers) is ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize("principal", [ALICE, BOB])
def test_the_owner_and_renewers_extend_a_token_up_to_its_maximum(
    world: World, principal: KafkaPrincipal
) -> None:
    created = create(world)
    world.principal = principal
    world.now_ms += HOUR_MS
    assert renew(world, created.hmac) == world.now_ms + DAY_MS
    assert renew(world, created.hmac, HOUR_MS) == world.now_ms + HOUR_MS
    assert renew(world, created.hmac, 30 * DAY_MS) == world.now_ms + DAY_MS
    (token,) = world.image.tokens.values()
    assert token.expiration_timestamp_ms == world.now_ms + DAY_MS
    for _ in range(8):
        world.now_ms = world.image.tokens[token.token_id].expiration_timestamp_ms
        last = renew(world, created.hmac)
    assert last == created.max_timestamp_ms


def test_a_token_is_expired_at_once_or_at_a_time(world: World) -> None:
    created = create(world)
    assert expire(world, created.hmac, HOUR_MS) == NOW_MS + HOUR_MS
    assert expire(world, created.hmac, 30 * DAY_MS) == created.max_timestamp_ms
    assert expire(world, created.hmac, -1) == NOW_MS
    assert not world.image.tokens


def test_strangers_and_expired_tokens_are_rejected(world: World) -> None:
    created = create(world, owner_principal_type="User", owner_principal_name="carol")
    # The requester alone may not renew it.
    assert error_of(renew, world, created.hmac) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert error_of(expire, world, created.hmac) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert error_of(renew, world, b"?") is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert error_of(expire, world, b"?") is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    world.now_ms += 2 * DAY_MS
    assert error_of(renew, world, created.hmac) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert error_of(expire, world, created.hmac) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    world.principal = CAROL
    assert error_of(expire, world, created.hmac) is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_without_a_secret_key_there_are_no_tokens() -> None:
    world = World(broker(1))
    world.principal = ALICE
    for call in (create, lambda world: renew(world, b"?"), lambda world: expire(world, b"?")):
        assert error_of(call, world) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_an_old_metadata_version_has_no_tokens(world: World) -> None:
    level = DELEGATION_TOKENS_FROM - 1
    world.apply(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
    assert error_of(create, world) is ErrorCode.UNSUPPORTED_VERSION


def test_expired_tokens_are_removed_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "MAX_REMOVALS_PER_RUN", 2)
    harness = ControllerHarness(**SECRET)

    async def scenario() -> None:
        start_ms = harness.loop.now_ms
        harness.lead(1)
        for number in range(4):
            harness.image.apply(
                DelegationTokenRecord(
                    token_id=f"t{number}",
                    max_timestamp=start_ms + DAY_MS,
                    expiration_timestamp=start_ms + (DAY_MS if number == 3 else HOUR_MS // 2),
                ),
                MetadataDelta(),
            )
        harness.follow()
        harness.lead(2)
        await harness.pass_ms(HOUR_MS - 1)
        harness.controller.run_periodic_tasks()
        harness.commit()
        assert len(harness.image.tokens) == 4
        await harness.pass_ms(1)
        for left in (2, 1, 1):
            harness.controller.run_periodic_tasks()
            harness.commit()
            assert len(harness.image.tokens) == left

    harness.run(scenario)
