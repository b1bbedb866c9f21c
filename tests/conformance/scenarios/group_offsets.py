"""Committed positions, and groups as an administrator sees and changes them."""

import time

from tests.conformance.clients.client import Code, Sent, refused_with
from tests.conformance.clients.group_client import (
    ChangesGroups,
    Committed,
    DeletesGroupOffsets,
    GroupClient,
    Joining,
    Place,
    Protocol,
)
from tests.conformance.scenarios.groups import PARTITIONS, at_work, created, produced
from tests.wait import wait_until

MINUTE_MS = 60_000


class OffsetScenarios:
    def test_a_consumer_may_commit_without_joining(self, client: GroupClient, topic: str) -> None:
        places = created(client, topic)
        produced(client, topic, 10)
        chosen = Place(topic, 1)
        with at_work(client.consumer_of(topic, [chosen])) as crew:
            (consumer,) = crew.members
            assert consumer.committed(chosen) is None
            crew.work_until(lambda: len(crew.taken) == 10, "all records of the partition are taken")
            consumer.commit()
            assert consumer.committed(chosen) == Committed(10)
            assert all(consumer.committed(place) is None for place in places - {chosen})
        produced(client, topic, 1)
        with at_work(client.consumer_of(topic, [chosen])) as crew:
            crew.work_until(lambda: crew.taken, "the next record is taken")
        assert [taken.offset for _, taken in crew.taken] == [10]

    def test_a_commit_keeps_its_metadata(self, client: GroupClient, topic: str) -> None:
        places = created(client, topic)
        committed = {
            Place(topic, 0): Committed(3, "reason ✓"),
            Place(topic, 1): Committed(0),
            Place(topic, 2): Committed(2**40, "x" * 4000),
        }
        with at_work(client.consumer_of(topic, list(places))) as crew:
            crew.members[0].commit(committed)
            assert client.group_offsets(topic) == committed
            with refused_with(Code.OFFSET_METADATA_TOO_LARGE):
                crew.members[0].commit({Place(topic, 3): Committed(1, "x" * 5000)})
        assert client.group_offsets(topic) == committed

    def test_a_commit_may_move_back_or_forth(self, client: GroupClient, topic: str) -> None:
        created(client, topic)
        produced(client, topic, 10)
        place = Place(topic, 0)
        with at_work(client.consumer_of(topic, [place])) as crew:
            (consumer,) = crew.members
            crew.work_until(lambda: len(crew.taken) == 10, "all records are taken")
            assert consumer.position(place) == 10
            for offset in 7, 2, 9:
                consumer.commit({place: Committed(offset)})
                assert consumer.committed(place) == Committed(offset)
            consumer.seek(place, 4)
            crew.work_until(lambda: len(crew.taken) == 16, "the records from there are taken again")
            assert crew.taken[10][1].offset == 4
            assert consumer.committed(place) == Committed(9)

    def test_a_group_may_start_at_a_time(self, client: GroupClient, topic: str) -> None:
        """As one resets a group by hand: find the offsets of a time, and commit them."""
        client.create_topic(topic)
        start_ms = int(time.time() * 1000) - 10 * MINUTE_MS
        minutes = range(10)
        client.produce(
            topic, [Sent(b"%d" % n, timestamp_ms=start_ms + n * MINUTE_MS) for n in minutes]
        )
        place, found = Place(topic, 0), client.offset_for_time(topic, start_ms + 6 * MINUTE_MS)
        assert found == 6
        with at_work(client.consumer_of(topic, [place])) as crew:
            crew.members[0].commit({place: Committed(found)})
        with at_work(client.join(topic, [topic], Joining(client.protocols[0]))) as crew:
            crew.take({b"6", b"7", b"8", b"9"})
        assert len(crew.taken) == 4

    def test_the_lag_is_what_is_not_committed_yet(self, client: GroupClient, topic: str) -> None:
        places = created(client, topic)
        values = produced(client, topic, 10)
        with at_work(client.join(topic, [topic], Joining(client.protocols[0]))) as crew:
            crew.take(values)
            crew.commit(places, 10)
            produced(client, topic, 3)
            lags = [
                client.ends(topic, partition=place.partition)[1] - committed.offset
                for place, committed in client.group_offsets(topic).items()
            ]
        assert lags == [3] * PARTITIONS


class GroupListScenarios:
    def test_a_group_is_listed_and_described(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        with at_work(*(client.join(topic, [topic], Joining(protocol)) for _ in range(2))) as crew:
            crew.share(places)
            crew.work_until(lambda: client.describe_group(topic).state == "Stable", "it is stable")
            assert client.groups()[topic].state in ("Stable", None)
            assert client.groups()[topic].protocol_type in ("consumer", None)
            described = client.describe_group(topic)
            assert described.assignor == ("uniform" if protocol == "consumer" else protocol)
            assert len({each.member_id for each in described.members}) == 2
            assert sorted(map(sorted, (each.assignment for each in described.members))) == sorted(
                map(sorted, (member.assignment() for member in crew.members))
            )
        wait_until(lambda: not client.describe_group(topic).members, "they have left")
        assert client.groups()[topic].state in ("Empty", None)


class GroupChangeScenarios:
    def test_offsets_are_altered_while_nobody_is_in(
        self, client: ChangesGroups, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        values = produced(client, topic, 10)
        with at_work(client.join(topic, [topic], Joining(protocol))) as crew:
            crew.take(values)
            crew.commit(places, 10)
            with refused_with(Code.UNKNOWN_MEMBER_ID):
                client.alter_group_offsets(topic, {Place(topic, 0): Committed(0)})
        client.alter_group_offsets(
            topic, {Place(topic, 0): Committed(4), Place(topic, 1): Committed(8)}
        )
        with at_work(client.join(topic, [topic], Joining(protocol))) as crew:
            crew.work_until(lambda: len(crew.taken) >= 8, "what lies after them is taken")
        assert {(taken.place.partition, taken.offset) for _, taken in crew.taken} == {
            *((0, offset) for offset in range(4, 10)),
            *((1, offset) for offset in range(8, 10)),
        }

    def test_a_group_is_deleted_when_nobody_is_in(
        self, client: ChangesGroups, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        with at_work(client.join(topic, [topic], Joining(protocol))) as crew:
            crew.share(places)
            with refused_with(Code.NON_EMPTY_GROUP):
                client.delete_group(topic)
            crew.take(produced(client, topic, 1))
            crew.commit(places, 1)
        client.delete_group(topic)
        assert topic not in client.groups()
        assert client.group_offsets(topic) == {}
        with refused_with(Code.GROUP_ID_NOT_FOUND):
            client.delete_group(topic)


class OffsetDeletionScenarios:
    def test_an_offset_is_deleted_where_nobody_reads_the_topic(
        self, client: DeletesGroupOffsets, topic: str
    ) -> None:
        places = created(client, topic)
        other = Place(f"{topic}-other", 0)
        client.create_topic(other.topic)
        with at_work(client.consumer_of(topic, [other])) as crew:
            crew.members[0].commit({other: Committed(5)})
        with at_work(client.join(topic, [topic], Joining(Protocol.RANGE))) as crew:
            crew.take(produced(client, topic, 1))
            crew.commit(places, 1)
            with refused_with(Code.GROUP_SUBSCRIBED_TO_TOPIC):
                client.delete_group_offset(topic, Place(topic, 0))
            client.delete_group_offset(topic, other)
            assert client.group_offsets(topic).keys() == places
        client.delete_group_offset(topic, Place(topic, 0))
        assert client.group_offsets(topic).keys() == places - {Place(topic, 0)}

    def test_a_static_member_is_removed(self, client: DeletesGroupOffsets, topic: str) -> None:
        places = created(client, topic)
        stays = client.join(topic, [topic], Joining(Protocol.RANGE, instance_id="stays"))
        goes = client.join(topic, [topic], Joining(Protocol.RANGE, instance_id="goes"))
        with at_work(stays, goes) as crew:
            crew.share(places)
            crew.members.remove(goes)
            goes.leave()
            assert {each.instance_id for each in client.describe_group(topic).members} == {
                "stays",
                "goes",
            }
            client.remove_static_member(topic, "goes")
            crew.share(places)
