"""The law of replication: records acknowledged with acks=all are never lost, and logs never diverge
below the high watermark, in any order of events, as long as leaders are elected from the ISR."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.replication.cluster import Cluster, contents

from barnabas.replication import alter_partition_manager
from barnabas.wire.errors import ErrorCode, KafkaError

BROKERS = (1, 2, 3)

broker_ids = st.sampled_from(BROKERS)
Step = tuple[str, int]


def often(times: int, kind: str, what: st.SearchStrategy[int]) -> list[st.SearchStrategy[Step]]:
    return [st.tuples(st.just(kind), what)] * times


steps = st.lists(
    st.one_of(
        *often(4, "append", st.sampled_from((-1, -1, -1, 1))),
        *often(8, "fetch", broker_ids),
        *often(2, "fetch in vain", broker_ids),
        *often(3, "decide", st.sampled_from((0, 0, 0, ErrorCode.INELIGIBLE_REPLICA))),
        *often(1, "decide in vain", st.just(0)),
        *often(1, "pass time", st.just(0)),
        *often(2, "elect", broker_ids),
        *often(1, "kill", broker_ids),
        *often(2, "restart", broker_ids),
        *often(1, "stop metadata", broker_ids),
        *often(2, "resume metadata", broker_ids),
    ),
    min_size=30,
    max_size=80,
)

AHEAD_OF_WHO_JOINS = [
    ("append", -1),
    ("fetch", 2),
    ("fetch", 2),
    ("fetch in vain", 3),
    ("decide", 0),
]
"""A follower that joins must have every committed record."""

AHEAD_OF_WHAT_LEADERS_KNOW = [
    ("append", -1),
    ("fetch", 2),
    ("fetch in vain", 2),
    ("elect", 2),
    ("fetch in vain", 3),
    ("decide", 0),
]
"""A follower that joins must have what was committed under the former leader."""

JOINED_UNKNOWN_TO_THE_LEADER = [
    ("stop metadata", 1),
    ("fetch in vain", 3),
    ("decide in vain", 0),
    ("append", -1),
    ("fetch", 2),
    ("fetch", 2),
]
"""A follower that may have joined counts for the high watermark."""


OUT_OF_DATE = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""What a follower hears where not all have heard of the same leader."""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends ISR changes that failed again at once."""
    monkeypatch.setattr(alter_partition_manager, "RETRY_S", 0)


class Run:
    """A cluster, and the records that were acknowledged to producers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.written = 0
        self.waiting: list[tuple[int, int, bytes]] = []  # leader, end offset, value
        self.acknowledged: dict[int, bytes] = {}  # by offset

    def step(self, kind: str, what: int) -> None:
        match kind:
            case "append":
                self.append(what)
            case "fetch" | "fetch in vain":
                self.fetch(what, is_lost=kind == "fetch in vain")
            case "pass time":
                self.cluster.pass_time(31_000)
                for broker_id in BROKERS:
                    if broker_id not in self.cluster.down:
                        self.cluster.shrink_isr(broker_id)
            case "decide" | "decide in vain":
                self.cluster.respond(ErrorCode(what), is_lost=kind == "decide in vain")
            case "elect":
                self.elect(what)
            case "kill":
                self.kill(what)
            case "restart":
                if what in self.cluster.down:
                    self.cluster.restart(what)
            case "stop metadata":
                self.cluster.stop_metadata(what)
            case "resume metadata" if what not in self.cluster.down:
                self.cluster.resume_metadata(what)

    def append(self, acks: int) -> None:
        """By a broker that leads according to its metadata: several may."""
        for broker_id in BROKERS:
            if broker_id not in self.cluster.down and self.cluster[broker_id].is_leader:
                self.append_by(broker_id, acks)

    def append_by(self, broker_id: int, acks: int) -> None:
        value = b"%d" % self.written
        self.written += 1
        try:
            end = self.cluster.append(value, acks=acks, by=broker_id)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_ENOUGH_REPLICAS:
                raise
            return
        if acks == -1:
            self.waiting.append((broker_id, end, value))

    def fetch(self, follower_id: int, *, is_lost: bool = False) -> None:
        cluster = self.cluster
        if follower_id in cluster.down:
            return
        state = cluster[follower_id].state
        if state is not None and state.leader not in {follower_id, *cluster.down}:
            code = cluster.fetch(follower_id, is_lost=is_lost)
            assert code in (ErrorCode.NONE, *OUT_OF_DATE)

    def elect(self, leader: int) -> None:
        """Elects a live in-sync replica, and removes dead replicas from the ISR."""
        isr = self.cluster.state.isr
        living = tuple(each for each in isr if each not in self.cluster.down)
        if leader in living:
            self.cluster.elect(leader, isr=living)

    def kill(self, broker_id: int) -> None:
        """A crash of the process: the page cache stays. The last one in sync is spared."""
        living = [each for each in BROKERS if each not in self.cluster.down]
        if broker_id in living and len(living) > 2:
            self.cluster.kill(broker_id)
            self.waiting = [wait for wait in self.waiting if wait[0] != broker_id]

    def collect_promises(self) -> None:
        left = []
        for leader, end, value in self.waiting:
            match self.cluster[leader].commit_result(end, -1):
                case ErrorCode.NONE:
                    self.acknowledged[end - 1] = value
                case None:
                    left.append((leader, end, value))
        self.waiting = left

    def check(self) -> None:
        cluster = self.cluster
        if cluster.state.leader in cluster.down:
            return
        leader = cluster.leader
        led = dict(enumerate(value for _, value in contents(leader)))
        for offset, value in self.acknowledged.items():
            assert led.get(offset) == value, f"offset {offset} was acknowledged and is lost"
        everything = contents(leader)
        for broker_id in BROKERS:
            if broker_id in cluster.down:
                continue
            replica = cluster[broker_id]
            counted = contents(replica, upto=replica.high_watermark)
            assert counted == everything[: len(counted)], f"the log of {broker_id} parted"
            if broker_id in cluster.state.isr:
                assert replica.log.log_end_offset >= max(self.acknowledged, default=-1) + 1


@settings(max_examples=60)
@example(steps=AHEAD_OF_WHO_JOINS, isr=(1, 2))
@example(steps=AHEAD_OF_WHAT_LEADERS_KNOW, isr=(1, 2))
@example(steps=JOINED_UNKNOWN_TO_THE_LEADER, isr=(1, 2))
@given(steps=steps, isr=st.sampled_from(((1, 2), (1, 2, 3))))
def test_committed_records_are_never_lost_and_logs_never_diverge_below_the_high_watermark(
    new_cluster: Callable[..., Cluster], steps: list[Step], isr: tuple[int, ...]
) -> None:
    cluster = new_cluster(*BROKERS)
    cluster.create_topic(min_insync_replicas="2", isr=isr)
    run = Run(cluster)
    for kind, what in steps:
        run.step(kind, what)
        run.collect_promises()
        run.check()
    heal(run)


def heal(run: Run) -> None:
    """Everybody is back, and all comes to be alike."""
    cluster = run.cluster
    for broker_id in BROKERS:
        if broker_id in cluster.down:
            cluster.restart(broker_id)
        cluster.resume_metadata(broker_id)
    for _ in range(4):
        for broker_id in BROKERS:
            run.fetch(broker_id)
            run.fetch(broker_id)
        cluster.respond()
    run.collect_promises()
    run.check()
    assert set(cluster.state.isr) == set(BROKERS)
    assert contents(cluster[1]) == contents(cluster[2]) == contents(cluster[3])
    assert {cluster[each].high_watermark for each in BROKERS} == {cluster.leader.log.log_end_offset}
