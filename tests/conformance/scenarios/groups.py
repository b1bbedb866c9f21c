"""Groups that share the partitions of topics: members come, go, and take over.

A scenario that takes `assignor` runs for each of the library's; one that takes `protocol` runs
once for each kind of rebalance: eager, cooperative, and KIP-848.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from tests.conformance.clients.client import BrokerError, Code, Sent
from tests.conformance.clients.group_client import (
    REBALANCING,
    Committed,
    Crew,
    GroupClient,
    Joining,
    Member,
    Place,
    Protocol,
)

PARTITIONS = 4
NUMBERS = count()


class SharingScenarios:
    def test_members_come_and_go_and_every_record_is_processed(
        self, client: GroupClient, topic: str, assignor: Protocol
    ) -> None:
        places = created(client, topic)
        with at_work(client.join(topic, [topic], Joining(assignor))) as crew:
            crew.share(places)
            for newcomers in 1, 2:
                crew.take(produced(client, topic, 10 * newcomers))
                crew.members.append(client.join(topic, [topic], Joining(assignor)))
                crew.share(places)
            crew.take(produced(client, topic, 30))
            crew.members.pop(0).leave()  # in the classic protocol the one that assigned
            crew.share(places)
            crew.take(produced(client, topic, 40))
            crew.commit(places, 100)

    def test_the_next_member_goes_on_where_the_last_one_committed(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        with at_work(client.join(topic, [topic], Joining(protocol))) as crew:
            crew.take(produced(client, topic, 10))
            crew.commit(places, 10)
        values = produced(client, topic, 5)
        with at_work(*(client.join(topic, [topic], Joining(protocol)) for _ in range(2))) as crew:
            crew.take(values)
        assert {(taken.place, taken.offset) for _, taken in crew.taken} == {
            (place, offset) for place in places for offset in range(10, 15)
        }

    def test_positions_are_committed_by_themselves(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        values = produced(client, topic, 10)
        joining = Joining(protocol, commits_by_itself=True)
        with at_work(client.join(topic, [topic], joining)) as crew:
            crew.take(values)
            committed = dict.fromkeys(places, Committed(10))
            crew.work_until(
                lambda: client.group_offsets(topic) == committed, "all positions are committed"
            )

    def test_new_partitions_are_shared_too(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        with at_work(*(client.join(topic, [topic], Joining(protocol)) for _ in range(2))) as crew:
            crew.share(places)
            client.create_partitions(topic, PARTITIONS + 2)
            crew.share(places | {Place(topic, PARTITIONS), Place(topic, PARTITIONS + 1)})

    def test_members_may_want_different_topics(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        first, second = created(client, f"{topic}-1"), created(client, f"{topic}-2")
        one = client.join(topic, [f"{topic}-1"], Joining(protocol))
        both = client.join(topic, [f"{topic}-1", f"{topic}-2"], Joining(protocol))
        with at_work(one, both) as crew:
            crew.work_until(
                lambda: (
                    one.assignment() <= first
                    and second <= both.assignment()
                    and not one.assignment() & both.assignment()
                    and one.assignment() | both.assignment() == first | second
                ),
                "each has what it wants",
            )


class PatternScenarios:
    """Topics by a pattern that the client resolves."""

    @pytest.mark.parametrize("protocol", [Protocol.RANGE])
    def test_a_pattern_finds_topics_that_come_later(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        first = created(client, f"{topic}-1")
        created(client, f"other-{topic}-1")
        with at_work(client.join(topic, [f"^{topic}-[0-9]"], Joining(protocol))) as crew:
            crew.share(first)
            second = created(client, f"{topic}-2")
            crew.share(first | second)
            crew.take(produced(client, f"{topic}-2", 5))
            client.delete_topic(f"{topic}-1")
            crew.share(second)
            crew.take(produced(client, f"{topic}-2", 5))


class ServerPatternScenarios:
    """Topics by a pattern that the broker resolves, in KIP-848.

    It looks for new topics every ten seconds, which is too long to wait for here.
    """

    @pytest.mark.parametrize("protocol", [Protocol.CONSUMER])
    def test_the_broker_finds_the_topics_of_a_pattern(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        first, second = created(client, f"{topic}-1"), created(client, f"{topic}-2")
        created(client, f"other-{topic}-1")
        pattern = f"^{topic}-[0-9]"
        with at_work(*(client.join(topic, [pattern], Joining(protocol)) for _ in range(2))) as crew:
            crew.share(first | second)
            crew.take(produced(client, f"{topic}-2", 5))
            client.delete_topic(f"{topic}-1")
            crew.share(second)


class StaticMemberScenarios:
    def test_a_static_member_comes_back_without_a_rebalance(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        stays, leaves = (
            client.join(topic, [topic], Joining(protocol, instance_id=name)) for name in "ab"
        )
        with at_work(stays, leaves) as crew:
            crew.share(places)
            crew.take(produced(client, topic, 10))
            crew.commit(places, 10)
            owned, changes = leaves.assignment(), stays.changes
            crew.members.remove(leaves)
            leaves.leave()
            returned = client.join(topic, [topic], Joining(protocol, instance_id="b"))
            crew.members.append(returned)
            crew.work_until(lambda: returned.assignment() == owned, "it has its partitions back")
            crew.take(produced(client, topic, 5))
            assert stays.changes == changes


class FencingScenarios:
    """Of static members in the classic protocol: the newer one wins."""

    @pytest.mark.parametrize("protocol", [Protocol.RANGE])
    def test_a_second_member_of_one_instance_id_fences_the_first(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        joining = Joining(protocol, instance_id="the only")
        first = client.join(topic, [topic], joining)
        with at_work(first) as crew:
            crew.share(places)
            with at_work(client.join(topic, [topic], joining)) as newer:
                newer.share(places)
                newer.work_until(
                    lambda: refusal(first, Place(topic, 0)) == Code.FENCED_INSTANCE_ID,
                    "the first is fenced",
                )
                assert newer.members[0].committed(Place(topic, 0)) is None


class UnreleasedScenarios:
    """Of static members in KIP-848: the older one stays."""

    @pytest.mark.parametrize("protocol", [Protocol.CONSUMER])
    def test_a_second_member_of_one_instance_id_is_refused(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        joining = Joining(protocol, instance_id="the only")
        with at_work(client.join(topic, [topic], joining)) as crew:
            crew.share(places)
            second = client.join(topic, [topic], joining)
            with pytest.raises(BrokerError) as refused:
                Crew([second]).work_until(lambda: False, "it is refused")
            assert refused.value.code == Code.UNRELEASED_INSTANCE_ID
            second.leave()
            crew.take(produced(client, topic, 5))


class MigrationScenarios:
    """A group moves between the protocols while members of both are in it."""

    @pytest.mark.parametrize("protocol", [Protocol.RANGE, Protocol.COOPERATIVE])
    def test_a_live_group_moves_to_the_consumer_protocol_and_back(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        classic, consumer = Joining(protocol), Joining(Protocol.CONSUMER)
        with at_work(client.join(topic, [topic], classic)) as crew:
            crew.take(produced(client, topic, 10))
            crew.commit(places, 10)
            for joining, assignor in (consumer, "uniform"), (classic, protocol.value):
                crew.members.append(client.join(topic, [topic], joining))
                crew.share(places)
                crew.take(produced(client, topic, 10))
                crew.members.pop(0).leave()
                crew.share(places)
                crew.take(produced(client, topic, 10))
                assert client.describe_group(topic).assignor == assignor
            crew.commit(places, 50)
        assert min(taken.offset for _, taken in crew.taken[4 * 10 :]) >= 10


@contextmanager
def at_work(*members: Member) -> Iterator[Crew]:
    """They leave at the end, also when the test failed."""
    crew = Crew(list(members))
    try:
        yield crew
    finally:
        crew.leave()


def created(client: GroupClient, topic: str) -> set[Place]:
    client.create_topic(topic, PARTITIONS)
    return {Place(topic, partition) for partition in range(PARTITIONS)}


def produced(client: GroupClient, topic: str, each: int) -> set[bytes]:
    """So many new records in each partition; their values, which no other record has."""
    sent = [
        Sent(b"%d" % next(NUMBERS), partition=partition)
        for partition in range(PARTITIONS)
        for _ in range(each)
    ]
    client.produce(topic, sent)
    return {each.value for each in sent if each.value}


def refusal(member: Member, place: Place) -> int | None:
    """What the member is refused with when it polls and commits, but for a rebalance."""
    try:
        member.poll()
        member.commit({place: Committed(1)})
    except BrokerError as refused:
        return None if refused.code in REBALANCING else refused.code
    return None
