"""Committing, fetching and deleting offsets, in every version."""

from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN, create
from tests.conformance.same.consumers import Consumer
from tests.conformance.same.groups import (
    first_member,
    heartbeat,
    join,
    joined,
    leave,
    member_id_for,
    subscription,
)
from tests.conformance.same.offsets import (
    BATCHED,
    COMMIT_VERSIONS,
    FETCH_VERSIONS,
    commit,
    delete_offsets,
    fetched,
)
from tests.conformance.same.sides import Sides, can_carry
from tests.conformance.same.talk import Talk, agree

from barnabas.wire.messages.group_offsets import OffsetCommitRequest, OffsetFetchRequest
from barnabas.wire.messages.topics import DeleteTopicsRequest

pytestmark = pytest.mark.peer

MOST_METADATA_BYTES = 4096


def commit_in_all_versions(talk: Talk, group: str, start: int = 2, **fields: Any) -> None:
    for version in COMMIT_VERSIONS:
        request = commit(talk.side, version, group, **fields)
        if version >= start and can_carry(request, version):
            talk.ask(request, version)


def fetch_in_all_versions(talk: Talk, *groups: str, start: int = 1, **fields: Any) -> None:
    for version in FETCH_VERSIONS:
        request = fetched(talk.side, version, *groups, **fields)
        if version >= start and can_carry(request, version):
            talk.ask(request, version)


COMMITS: dict[str, dict[str, Any]] = {
    "plain": {},
    "two_partitions": {"partitions": [0, 1]},
    "the_same_twice": {"partitions": [0, 0]},
    "with_metadata": {"metadata": "what I did"},
    "metadata_null": {"metadata": None},
    "metadata_at_the_limit": {"metadata": "m" * MOST_METADATA_BYTES},
    "metadata_too_long": {"metadata": "m" * (MOST_METADATA_BYTES + 1)},
    "metadata_of_long_letters": {"metadata": "é" * (MOST_METADATA_BYTES - 1)},
    "offset_zero": {"offset": 0},
    "offset_negative": {"offset": -1},
    "offset_very_negative": {"offset": -7},
    "offset_huge": {"offset": 2**63 - 1},
    "with_leader_epoch": {"leader_epoch": 3},
    "leader_epoch_odd": {"leader_epoch": -5},
    "unknown_topic": {"topic": "unknown-to-both"},
    "bad_topic": {"topic": "no/name"},
    "empty_topic": {"topic": ""},
    "internal_topic": {"topic": "__consumer_offsets"},
    "unknown_partition": {"partitions": [99]},
    "negative_partition": {"partitions": [-1]},
    "unknown_and_known_partition": {"partitions": [99, 0]},
    "no_group": {"group": ""},
    "generation_without_a_group": {"generation": 1, "member_id": "m"},
    "generation_zero_without_a_group": {"generation": 0, "member_id": "m"},
    "generation_without_member": {"generation": 1},
    "member_without_generation": {"member_id": "m"},
    "instance_without_a_group": {"instance": "i"},
    "generation_very_negative": {"generation": -5},
}


@pytest.mark.parametrize("case", COMMITS)
def test_a_commit_by_nobody_in_particular(coordinators: Sides, case: str) -> None:
    """A group that only commits is one without members."""

    def conversation(talk: Talk) -> None:
        fields = dict(COMMITS[case])
        group = fields.pop("group", f"commit-{case}")
        commit_in_all_versions(talk, group, **fields)
        if group:
            fetch_in_all_versions(talk, group)
            fetch_in_all_versions(talk, group, topics=None)

    agree(coordinators, conversation)


FETCHES: dict[str, dict[str, Any]] = {
    "known": {},
    "all": {"topics": None},
    "none": {"topics": []},
    "no_partitions": {"partitions": []},
    "unknown_topic": {"topics": ["unknown-to-both"]},
    "known_and_unknown_topic": {"topics": [PLAIN, "unknown-to-both"]},
    "topic_twice": {"topics": [PLAIN, PLAIN]},
    "partition_twice": {"partitions": [0, 0]},
    "unknown_partitions": {"partitions": [99, -1]},
    "stable": {"require_stable": True},
    "all_stable": {"topics": None, "require_stable": True},
    "member_unknown": {"member_id": "m", "member_epoch": 1},
    "member_without_epoch": {"member_id": "m"},
    "epoch_without_member": {"member_epoch": 1},
}


@pytest.mark.parametrize("group", ["fetch-known", "fetch-unknown", ""])
@pytest.mark.parametrize("case", FETCHES)
def test_fetching_offsets(coordinators: Sides, group: str, case: str) -> None:
    def conversation(talk: Talk) -> None:
        if group == "fetch-known":
            talk.ask(commit(talk.side, 9, group, metadata="m", leader_epoch=2), 9)
        fetch_in_all_versions(talk, group, **FETCHES[case])

    agree(coordinators, conversation)


def test_fetching_offsets_of_several_groups(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        for group in "several-a", "several-b":
            talk.ask(commit(talk.side, 9, group), 9)
        groups = "several-a", "several-b", "several-unknown", "", "several-a"
        fetch_in_all_versions(talk, *groups, start=BATCHED)
        fetch_in_all_versions(talk, *groups, topics=None, start=BATCHED)
        for version in range(BATCHED, 11):
            talk.ask(OffsetFetchRequest(), version)
        for version in COMMIT_VERSIONS:
            talk.ask(OffsetCommitRequest(group_id="several-nothing"), version)

    agree(coordinators, conversation)


def test_commits_in_a_classic_group(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "commits-classic"
        one = first_member(talk, group)
        known: dict[str, Any] = {"member_id": one.member_id, "generation": one.generation}
        commit_in_all_versions(talk, group, **known)
        for changed in (
            {"generation": one.generation + 1},
            {"generation": one.generation - 1},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": ""},
            {"member_id": "", "generation": -1},
            {"instance": "unknown"},
            {"topic": "unknown-to-both"},
        ):
            commit_in_all_versions(talk, group, **(known | changed))
        fetch_in_all_versions(talk, group)
        fetch_in_all_versions(talk, group, member_id="nobody", member_epoch=5)
        fetch_in_all_versions(talk, group, member_id=one.member_id, member_epoch=one.generation)
        pending = member_id_for(talk, group, "pending")
        commit_in_all_versions(talk, group, member_id=pending, generation=one.generation)
        commit_in_all_versions(talk, group, member_id=pending)
        talk.ask(leave(group, pending))
        talk.ask(leave(group, one.member_id))
        commit_in_all_versions(talk, group, **known)
        commit_in_all_versions(talk, group, offset=6)
        fetch_in_all_versions(talk, group)

    agree(coordinators, conversation)


def test_commits_while_a_classic_group_rebalances(coordinators: Sides) -> None:
    """Still taken while the members come together, not once they wait for the leader."""

    def conversation(talk: Talk) -> None:
        group = "commits-rebalancing"
        one = first_member(talk, group)
        known: dict[str, Any] = {"member_id": one.member_id, "generation": one.generation}
        second = member_id_for(talk, group, "second")
        waiting = talk.call(join(group, second))
        talk.ask_until(
            lambda: heartbeat(group, one.generation, one.member_id), 4, lambda a: a.error_code != 0
        )
        commit_in_all_versions(talk, group, **known)
        commit_in_all_versions(talk, group, member_id=second, generation=one.generation)
        talk.ask(join(group, one.member_id))
        waiting.answer()
        commit_in_all_versions(talk, group, **known)
        commit_in_all_versions(talk, group, **(known | {"generation": one.generation + 1}))
        commit_in_all_versions(talk, group, member_id="", generation=-1)

    agree(coordinators, conversation)


def test_commits_of_a_static_member(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "commits-static"
        old = first_member(talk, group, "old", instance="one")
        known: dict[str, Any] = {"member_id": old.member_id, "generation": old.generation}
        commit_in_all_versions(talk, group, **known)
        commit_in_all_versions(talk, group, instance="one", **known)
        commit_in_all_versions(talk, group, instance="one", member_id="nobody", generation=1)
        joined(talk, group, "new", instance="one")
        commit_in_all_versions(talk, group, instance="one", **known)
        commit_in_all_versions(talk, group, **known)

    agree(coordinators, conversation)


def test_commits_in_a_consumer_group(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "commits-848"
        one = Consumer(talk, group, "one").join().beat_until_owning(2)
        known: dict[str, Any] = {"member_id": "one", "generation": one.epoch}
        commit_in_all_versions(talk, group, **known)
        for changed in (
            {"generation": one.epoch + 1},
            {"generation": one.epoch - 1},
            {"generation": 0},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": ""},
            {"member_id": "", "generation": -1},
            {"instance": "unknown"},
            {"partitions": [99]},
        ):
            commit_in_all_versions(talk, group, **(known | changed))
        for epoch in one.epoch, one.epoch + 1, one.epoch - 1, 0, -1:
            fetch_in_all_versions(talk, group, member_id="one", member_epoch=epoch)
        fetch_in_all_versions(talk, group, member_id="nobody", member_epoch=one.epoch)
        fetch_in_all_versions(talk, group, member_id="", member_epoch=-1)
        fetch_in_all_versions(talk, group, member_id="nobody", member_epoch=1, topics=None)
        fetch_in_all_versions(talk, group)
        one.leave()
        commit_in_all_versions(talk, group, **known)
        commit_in_all_versions(talk, group)
        fetch_in_all_versions(talk, group, member_id="one", member_epoch=one.epoch)

    agree(coordinators, conversation)


def test_deleting_offsets(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        for group in "delete-unknown", "":
            talk.ask(delete_offsets(group, PLAIN))
        group = "delete-empty"
        talk.ask(commit(talk.side, 9, group, partitions=[0, 1]), 9)
        talk.ask(delete_offsets(group))
        talk.ask(delete_offsets(group, PLAIN, "unknown-to-both"))
        talk.ask(delete_offsets(group, PLAIN))
        talk.ask(delete_offsets(group, PLAIN, partitions=[99, 1, 1]))
        fetch_in_all_versions(talk, group)
        talk.ask(delete_offsets(group, PLAIN))

    agree(coordinators, conversation)


@pytest.mark.parametrize(
    ("protocol_type", "metadata"),
    [
        ("consumer", subscription(PLAIN)),
        ("consumer", subscription("other")),
        ("consumer", b"\x00"),
        ("connect", subscription(PLAIN)),
    ],
    ids=["subscribed", "not_subscribed", "unreadable", "not_consumers"],
)
def test_deleting_offsets_of_a_live_classic_group(
    coordinators: Sides, protocol_type: str, metadata: bytes
) -> None:
    def conversation(talk: Talk) -> None:
        group = f"delete-{protocol_type}-{metadata.hex()}"
        one = first_member(talk, group, protocol_type=protocol_type, metadata=metadata)
        known: dict[str, Any] = {"member_id": one.member_id, "generation": one.generation}
        talk.ask(commit(talk.side, 9, group, **known), 9)
        talk.ask(delete_offsets(group, PLAIN, "unknown-to-both"))
        talk.ask(fetched(talk.side, 9, group), 9)

    agree(coordinators, conversation)


@pytest.mark.parametrize("topics", [[PLAIN], ["other"]], ids=["subscribed", "not_subscribed"])
def test_deleting_offsets_of_a_live_consumer_group(coordinators: Sides, topics: list[str]) -> None:
    def conversation(talk: Talk) -> None:
        group = f"delete-848-{topics[0]}"
        one = Consumer(talk, group, "one").join(topics=topics)
        talk.ask(commit(talk.side, 9, group, member_id="one", generation=one.epoch), 9)
        talk.ask(delete_offsets(group, PLAIN, "unknown-to-both"))
        talk.ask(fetched(talk.side, 9, group), 9)

    agree(coordinators, conversation)


def test_offsets_of_a_deleted_topic(coordinators: Sides) -> None:
    """They go with it."""

    def conversation(talk: Talk) -> None:
        create(talk.side, "committed-to", 2)
        group = "commits-deleted"
        talk.ask(commit(talk.side, 9, group, topic="committed-to"), 9)
        talk.ask(commit(talk.side, 9, group), 9)
        talk.side.ask(DeleteTopicsRequest(topic_names=["committed-to"], timeout_ms=10_000), 5)
        talk.ask_until(
            lambda: fetched(talk.side, 9, group, topics=None),
            9,
            lambda answer: len(answer.groups[0].topics) == 1,
        )
        fetch_in_all_versions(talk, group, topics=["committed-to"], start=BATCHED)

    agree(coordinators, conversation)
