"""What a large group costs: work per member, not per pair of members."""

import sys
from collections.abc import Callable
from types import FrameType

from tests.coordinator.classic.harness import ClassicHarness

from barnabas.coordinator.groups.classic.group import ClassicState


def calls_of(work: Callable[[], object]) -> int:
    """The number of Python calls, which measures the cost without a clock."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def rebalanced(harness: ClassicHarness, members: list[str]) -> None:
    """All join again, since one has another subscription, and sync."""
    joining = [harness.join(each, topics=("other",)) for each in members]
    assert all(each.is_done for each in joining)
    assert sum(len(each.result().members) for each in joining) == len(members)
    harness.synced(members)
    assert harness.group.state is ClassicState.STABLE


def test_joining_and_syncing_a_group_four_times_as_large_is_four_times_the_work() -> None:
    def work(count: int) -> int:
        harness = ClassicHarness()
        members: list[str] = []
        first = calls_of(lambda: members.extend(harness.stable(count)))
        again = calls_of(lambda: rebalanced(harness, members))
        return first + again

    work(1)
    assert work(500) < 5 * work(125)


def test_a_heartbeat_costs_the_same_in_any_group() -> None:
    def work(count: int) -> int:
        harness = ClassicHarness()
        member = harness.stable(count)[-1]
        return calls_of(lambda: harness.heartbeat(member, 1))

    work(1)
    assert work(200) == work(2)


def test_a_generation_of_500_is_one_record() -> None:
    harness = ClassicHarness()
    members = harness.stable(500)
    written = len(harness.written)
    rebalanced(harness, members)
    assert len(harness.written) == written + 1
    assert len(harness.written[-1].value.members) == 500
