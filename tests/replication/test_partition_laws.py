"""What holds of a partition whatever happens to it."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.world import World

from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records

Step = tuple[str, int]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("lead alone"), st.just(0)),
        st.tuples(st.just("lead with a follower"), st.just(0)),
        st.tuples(st.just("follow"), st.just(0)),
        st.tuples(st.just("stop"), st.just(0)),
        st.tuples(st.just("keep house"), st.integers(0, 20_000)),
        st.tuples(st.just("move"), st.integers(0, 1)),
    ),
    max_size=25,
)


def take(world: World, step: Step, written: list[bytes]) -> None:
    match step:
        case "append", count:
            values = [f"{len(written) + number}".encode() for number in range(count)]
            if world.partition("orders").is_leader:
                world.append("orders", *values, acks=1)
                written += values
        case "lead alone", _:
            world.lead("orders", leader=1, isr=(1,))
        case "lead with a follower", _:
            world.lead("orders", leader=1, isr=(1, 2))
        case "follow", _:
            world.lead("orders", leader=2, isr=(1, 2))
        case "stop", _:
            world.restart()
        case "keep house", for_ms:
            world.run_maintenance(for_ms=for_ms)
        case "move", disk:
            world.partitions.move_to_log_dir("orders", 0, str(world.paths[disk]))


def read_all(world: World) -> list[bytes | None]:
    partition = world.partition("orders")
    values: list[bytes | None] = []
    offset = 0
    while (records := partition.fetch(offset, 100).records) is not None:
        content = records.read()
        for position, _ in iterate_batches(content):
            values += [record.value for record in read_records(content, position)]
        offset = records.next_offset
    return values


@settings(max_examples=60)
@given(steps=STEPS)
def test_readable_records_stay_readable_and_written_records_are_not_lost(
    steps: list[Step], new_world: Callable[..., World]
) -> None:
    world = new_world(disks=2)
    world.create_topic("orders", replicas=(1, 2), isr=(1,), segment_bytes="1048576")
    written: list[bytes] = []
    high_watermark = 0
    for step in steps:
        take(world, step, written)
        partition = world.partition("orders")
        assert high_watermark <= partition.high_watermark <= partition.log.log_end_offset
        high_watermark = partition.high_watermark
        assert partition.log.log_end_offset == len(written)
        if partition.is_leader:
            assert read_all(world) == written[:high_watermark]
