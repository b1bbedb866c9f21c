"""One step of a member: every state, whatever the member reports and others own."""

import pytest
from tests.coordinator.consumer.harness import report

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState, OwnedPartitions
from barnabas.coordinator.groups.consumer.reconciliation import ReportedPartitions, reconcile
from barnabas.wire.errors import ErrorCode, KafkaError

STABLE, UNREVOKED, UNRELEASED = list(MemberState)[:3]
T, U = b"t" * 16, b"u" * 16


def member(
    epoch: int,
    assigned: OwnedPartitions,
    pending: OwnedPartitions | None = None,
    state: MemberState = STABLE,
) -> ConsumerMember:
    return ConsumerMember(
        "m",
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned=assigned,
        pending_revocation=pending or {},
    )


def step(
    before: ConsumerMember,
    target: Assignment,
    *,
    epoch: int = 6,
    reported: ReportedPartitions = None,
    owned_by_others: tuple[int, ...] = (),
    unsubscribed: tuple[bytes, ...] = (),
    has_resubscribed: bool = False,
) -> ConsumerMember:
    return reconcile(
        before,
        epoch,
        target,
        reported=reported,
        is_subscribed=lambda topic_id: topic_id not in unsubscribed,
        is_owned=lambda _, partition: partition in owned_by_others,
        has_resubscribed=has_resubscribed,
    )


def test_a_stable_member_at_the_target_epoch_stays_as_it_is() -> None:
    before = member(6, {T: {0: 3}})
    assert step(before, {T: frozenset({0})}) is before


def test_a_member_with_nothing_to_revoke_moves_to_the_target_epoch() -> None:
    after = step(member(5, {T: {0: 3}}), {T: frozenset({0, 1})})
    assert (after.member_epoch, after.previous_member_epoch, after.state) == (6, 5, STABLE)
    assert after.assigned == {T: {0: 3, 1: 6}}


def test_a_member_with_something_to_revoke_stays_in_its_epoch() -> None:
    after = step(member(5, {T: {0: 3, 1: 4}}), {T: frozenset({1, 2})})
    assert (after.member_epoch, after.previous_member_epoch, after.state) == (5, 5, UNREVOKED)
    assert after.assigned == {T: {1: 4}}
    assert after.pending_revocation == {T: {0: 3}}


def test_partitions_that_are_not_reported_need_no_revocation() -> None:
    after = step(member(5, {T: {0: 3, 1: 4}}), {T: frozenset({1})}, reported=report([(T, 1)]))
    assert (after.member_epoch, after.state) == (6, STABLE)
    assert after.assigned == {T: {1: 4}}


@pytest.mark.parametrize("reported", [None, report([(T, 0)])])
def test_a_member_is_unrevoked_until_it_reports_the_revocation(
    reported: ReportedPartitions,
) -> None:
    before = member(5, {T: {1: 4}}, {T: {0: 3}}, UNREVOKED)
    assert step(before, {T: frozenset({1, 2})}, reported=reported) is before


def test_a_member_that_has_revoked_moves_to_the_latest_target() -> None:
    before = member(5, {T: {1: 4}}, {T: {0: 3}}, UNREVOKED)
    after = step(before, {T: frozenset({1, 2})}, epoch=9, reported=report([(T, 1)]))
    assert (after.member_epoch, after.state) == (9, STABLE)
    assert after.assigned == {T: {1: 4, 2: 9}}
    assert not after.pending_revocation


def test_a_member_that_has_revoked_may_have_to_revoke_more() -> None:
    before = member(5, {T: {1: 4, 2: 4}}, {T: {0: 3}}, UNREVOKED)
    after = step(before, {T: frozenset({1})}, reported=report([(T, 1), (T, 2)]))
    assert (after.member_epoch, after.state) == (5, UNREVOKED)
    assert after.pending_revocation == {T: {2: 4}}


def test_a_partition_just_revoked_may_be_assigned_again() -> None:
    before = member(5, {}, {T: {0: 3}}, UNREVOKED)
    after = step(before, {T: frozenset({0})}, reported=[], owned_by_others=(0,))
    assert (after.state, after.assigned) == (STABLE, {T: {0: 6}})


def test_partitions_of_other_members_are_awaited_at_the_target_epoch() -> None:
    after = step(member(5, {}), {T: frozenset({0, 1})}, owned_by_others=(1,))
    assert (after.member_epoch, after.state) == (6, UNRELEASED)
    assert after.assigned == {T: {0: 6}}

    later = step(after, {T: frozenset({0, 1})})
    assert (later.member_epoch, later.state) == (6, STABLE)
    assert later.assigned == {T: {0: 6, 1: 6}}


def test_a_topic_without_subscription_is_not_assigned() -> None:
    target = {T: frozenset({0}), U: frozenset({0})}
    assert step(member(5, {}), target, unsubscribed=(U,)).assigned == {T: {0: 6}}


def test_a_topic_it_does_not_subscribe_to_any_more_is_revoked_within_the_epoch() -> None:
    before = member(6, {T: {0: 3}, U: {0: 3}})
    target = {T: frozenset({0}), U: frozenset({0})}
    after = step(before, target, unsubscribed=(U,), has_resubscribed=True)
    assert (after.member_epoch, after.state) == (6, UNREVOKED)
    assert after.assigned == {T: {0: 3}}
    assert after.pending_revocation == {U: {0: 3}}

    gone = report([(T, 0)])
    after = step(before, target, reported=gone, unsubscribed=(U,), has_resubscribed=True)
    assert (after.state, after.assigned, after.pending_revocation) == (STABLE, {T: {0: 3}}, {})


def test_an_unsubscribed_topic_is_added_to_a_pending_revocation() -> None:
    before = member(5, {T: {1: 3}, U: {0: 3}}, {T: {0: 3}}, UNREVOKED)
    after = step(before, {}, unsubscribed=(T, U), has_resubscribed=True)
    assert after.assigned == {}
    assert after.pending_revocation == {T: {0: 3, 1: 3}, U: {0: 3}}


@pytest.mark.parametrize("reported", [None, report([(T, 0)])])
def test_a_member_in_an_unknown_state_has_to_rejoin(reported: ReportedPartitions) -> None:
    before = member(5, {T: {0: 3}}, state=MemberState.UNKNOWN)
    with pytest.raises(KafkaError) as append_error:
        step(before, {T: frozenset({0})}, reported=reported)
    assert append_error.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    assert step(before, {T: frozenset({0})}, reported=[]).member_epoch == 6
