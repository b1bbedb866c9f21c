"""Leader and ISR after a change, as a table of partition, event and outcome."""

from typing import Any

import pytest

from barnabas.controller.partition_change import Election, ElectionRules, build_partition_change
from barnabas.metadata.replay import apply_partition_change
from barnabas.metadata.states import NO_LEADER, PartitionRegistration, RecoveryState

TOPIC = b"t" * 16


def partition(
    isr: tuple[int, ...],
    leader: int,
    *,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    recovery: int = RecoveryState.RECOVERED,
) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=(1, 2, 3),
        isr=isr,
        leader=leader,
        leader_epoch=10,
        partition_epoch=20,
        directories=(b"1" * 16, b"2" * 16, b"3" * 16),
        recovery_state=recovery,
        elr=elr,
        last_known_elr=last_known,
    )


def rules(
    election: Election = Election.ONLINE, *, min_isr: int = 2, elr: bool = True, old: bool = False
) -> ElectionRules:
    return ElectionRules(election, min_isr, elr, old)


def changed(
    before: PartitionRegistration, rules: ElectionRules, alive: set[int], **target: Any
) -> PartitionRegistration | None:
    record = build_partition_change(TOPIC, 0, before, rules, alive.__contains__, **target)
    return apply_partition_change(before, record) if record is not None else None


def outcome(state: PartitionRegistration | None) -> Any:
    assert state is not None
    return state.leader, state.isr, state.elr, state.last_known_elr, state.recovery_state


def test_a_partition_with_an_acceptable_leader_does_not_change() -> None:
    assert changed(partition((1, 2, 3), 1), rules(), {1, 2, 3}) is None


CASES = [
    # before, rules, alive, requested ISR -> leader, isr, elr, last known, recovery
    (partition((1, 2, 3), 1), rules(), {2, 3}, (2, 3), (2, (2, 3), (), (), 0)),
    (partition((1, 2), 1), rules(), {2}, (2,), (2, (2,), (1,), (), 0)),
    (partition((2,), 2, elr=(1,)), rules(), set(), (), (NO_LEADER, (), (1, 2), (2,), 0)),
    (
        partition((), NO_LEADER, elr=(1, 2), last_known=(2,)),
        rules(),
        {1},
        (),
        (1, (1,), (2,), (), 0),
    ),
    (partition((1,), 1, elr=(2,)), rules(), {1, 2, 3}, (1, 3), (1, (1, 3), (), (), 0)),
    # The last known leader comes back without a sure log: it leads, but has to look.
    (partition((), NO_LEADER, last_known=(3,)), rules(), {1, 3}, (), (3, (3,), (), (), 1)),
    (partition((), NO_LEADER, last_known=(3,)), rules(), {1}, (), None),
    # Without eligible leaders the last ISR is kept while there is no leader.
    (partition((1,), 1), rules(elr=False), set(), (), (NO_LEADER, (1,), (), (), 0)),
    (partition((1,), NO_LEADER), rules(elr=False), {1, 2}, (1,), (1, (1,), (), (), 0)),
    (partition((1,), NO_LEADER), rules(elr=False), {2}, (1,), None),
    # Unclean elections take any live replica.
    (partition((1,), 1), rules(Election.UNCLEAN, elr=False), {2}, (), (2, (2,), (), (), 1)),
    (partition((1,), 1), rules(Election.UNCLEAN), {2}, (), (2, (2,), (), (), 1)),
    # The preferred leader takes over only if it is in sync.
    (partition((1, 2), 2), rules(Election.PREFERRED), {1, 2}, (1, 2), (1, (1, 2), (), (), 0)),
    (partition((2, 3), 2), rules(Election.PREFERRED), {1, 2, 3}, (2, 3), None),
]


@pytest.mark.parametrize(("before", "by", "alive", "isr", "expected"), CASES)
def test_the_leader_and_isr_after_a_change(
    before: PartitionRegistration,
    by: ElectionRules,
    alive: set[int],
    isr: tuple[int, ...],
    expected: Any,
) -> None:
    after = changed(before, by, alive, isr=isr)
    if expected is None:
        assert after is None
    else:
        assert outcome(after) == expected


def test_a_broker_after_an_unclean_shutdown_is_not_an_eligible_leader() -> None:
    after = changed(partition((1,), 1), rules(min_isr=1), set(), isr=(), unclean_shutdown=1)
    assert outcome(after) == (NO_LEADER, (), (), (1,), 0)
    after = changed(
        partition((), NO_LEADER, elr=(1,), last_known=(1,)),
        rules(),
        set(),
        isr=(),
        unclean_shutdown=1,
    )
    assert outcome(after) == (NO_LEADER, (), (), (1,), 0)


def test_only_old_metadata_versions_begin_an_epoch_when_the_isr_shrinks() -> None:
    for old, epoch in ((False, 10), (True, 11)):
        after = changed(partition((1, 2), 1), rules(old=old), {1, 2}, isr=(1,))
        assert after is not None
        assert (after.leader, after.leader_epoch) == (1, epoch)


def test_recovery_ends_when_the_leader_reports_it() -> None:
    recovering = partition((1,), 1, recovery=RecoveryState.RECOVERING)
    after = changed(recovering, rules(), {1}, isr=(1,), recovery_state=RecoveryState.RECOVERED)
    assert after is not None
    assert after.recovery_state == RecoveryState.RECOVERED
