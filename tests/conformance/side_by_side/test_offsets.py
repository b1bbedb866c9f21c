"""Committing, fetching and deleting offsets, in every version."""

from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN, create_topic
from tests.conformance.side_by_side.consumers import Consumer
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import (
    first_member,
    heartbeat,
    join,
    join_member,
    leave,
    request_member_id,
    subscription,
)
from tests.conformance.side_by_side.offsets import (
    COMMIT_VERSIONS,
    FETCH_VERSIONS,
    FIRST_BATCHED,
    commit,
    delete_offsets,
    fetch_offsets,
)
from tests.conformance.side_by_side.sides import Sides, is_encodable

from barnabas.wire.messages.group_offsets import OffsetCommitRequest, OffsetFetchRequest
from barnabas.wire.messages.topics import DeleteTopicsRequest

pytestmark = pytest.mark.peer

MAX_METADATA_BYTES = 4096


def commit_in_all_versions(dialog: Dialog, group: str, start: int = 2, **fields: Any) -> None:
    for version in COMMIT_VERSIONS:
        request = commit(dialog.side, version, group, **fields)
        if version >= start and is_encodable(request, version):
            dialog.send(request, version)


def fetch_in_all_versions(dialog: Dialog, *groups: str, start: int = 1, **fields: Any) -> None:
    for version in FETCH_VERSIONS:
        request = fetch_offsets(dialog.side, version, *groups, **fields)
        if version >= start and is_encodable(request, version):
            dialog.send(request, version)


COMMITS: dict[str, dict[str, Any]] = {
    "plain": {},
    "two_partitions": {"partitions": [0, 1]},
    "the_same_twice": {"partitions": [0, 0]},
    "with_metadata": {"metadata": "what I did"},
    "metadata_null": {"metadata": None},
    "metadata_at_the_limit": {"metadata": "m" * MAX_METADATA_BYTES},
    "metadata_too_long": {"metadata": "m" * (MAX_METADATA_BYTES + 1)},
    "metadata_of_long_letters": {"metadata": "é" * (MAX_METADATA_BYTES - 1)},
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
def test_a_commit_without_a_member(coordinators: Sides, case: str) -> None:
    """The group has offsets and no members."""

    def script(dialog: Dialog) -> None:
        fields = dict(COMMITS[case])
        group = fields.pop("group", f"commit-{case}")
        commit_in_all_versions(dialog, group, **fields)
        if group:
            fetch_in_all_versions(dialog, group)
            fetch_in_all_versions(dialog, group, topics=None)

    assert_same_dialog(coordinators, script)


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
    def script(dialog: Dialog) -> None:
        if group == "fetch-known":
            dialog.send(commit(dialog.side, 9, group, metadata="m", leader_epoch=2), 9)
        fetch_in_all_versions(dialog, group, **FETCHES[case])

    assert_same_dialog(coordinators, script)


def test_fetching_offsets_of_several_groups(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        for group in "several-a", "several-b":
            dialog.send(commit(dialog.side, 9, group), 9)
        groups = "several-a", "several-b", "several-unknown", "", "several-a"
        fetch_in_all_versions(dialog, *groups, start=FIRST_BATCHED)
        fetch_in_all_versions(dialog, *groups, topics=None, start=FIRST_BATCHED)
        for version in range(FIRST_BATCHED, 11):
            dialog.send(OffsetFetchRequest(), version)
        for version in COMMIT_VERSIONS:
            dialog.send(OffsetCommitRequest(group_id="several-nothing"), version)

    assert_same_dialog(coordinators, script)


def test_commits_in_a_classic_group(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "commits-classic"
        one = first_member(dialog, group)
        member_fields: dict[str, Any] = {"member_id": one.member_id, "generation": one.generation}
        commit_in_all_versions(dialog, group, **member_fields)
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
            commit_in_all_versions(dialog, group, **(member_fields | changed))
        fetch_in_all_versions(dialog, group)
        fetch_in_all_versions(dialog, group, member_id="nobody", member_epoch=5)
        fetch_in_all_versions(dialog, group, member_id=one.member_id, member_epoch=one.generation)
        pending = request_member_id(dialog, group, "pending")
        commit_in_all_versions(dialog, group, member_id=pending, generation=one.generation)
        commit_in_all_versions(dialog, group, member_id=pending)
        dialog.send(leave(group, pending))
        dialog.send(leave(group, one.member_id))
        commit_in_all_versions(dialog, group, **member_fields)
        commit_in_all_versions(dialog, group, offset=6)
        fetch_in_all_versions(dialog, group)

    assert_same_dialog(coordinators, script)


def test_commits_while_a_classic_group_rebalances(coordinators: Sides) -> None:
    """They succeed in PreparingRebalance and fail in CompletingRebalance."""

    def script(dialog: Dialog) -> None:
        group = "commits-rebalancing"
        one = first_member(dialog, group)
        member_fields: dict[str, Any] = {"member_id": one.member_id, "generation": one.generation}
        second = request_member_id(dialog, group, "second")
        waiting = dialog.send_async(join(group, second))
        dialog.send_until(
            lambda: heartbeat(group, one.generation, one.member_id), 4, lambda a: a.error_code != 0
        )
        commit_in_all_versions(dialog, group, **member_fields)
        commit_in_all_versions(dialog, group, member_id=second, generation=one.generation)
        dialog.send(join(group, one.member_id))
        waiting.response()
        commit_in_all_versions(dialog, group, **member_fields)
        commit_in_all_versions(
            dialog, group, **(member_fields | {"generation": one.generation + 1})
        )
        commit_in_all_versions(dialog, group, member_id="", generation=-1)

    assert_same_dialog(coordinators, script)


def test_commits_of_a_static_member(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "commits-static"
        old = first_member(dialog, group, "old", instance="one")
        member_fields: dict[str, Any] = {"member_id": old.member_id, "generation": old.generation}
        commit_in_all_versions(dialog, group, **member_fields)
        commit_in_all_versions(dialog, group, instance="one", **member_fields)
        commit_in_all_versions(dialog, group, instance="one", member_id="nobody", generation=1)
        join_member(dialog, group, "new", instance="one")
        commit_in_all_versions(dialog, group, instance="one", **member_fields)
        commit_in_all_versions(dialog, group, **member_fields)

    assert_same_dialog(coordinators, script)


def test_commits_in_a_consumer_group(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "commits-848"
        one = Consumer(dialog, group, "one").join().heartbeat_until_owning(2)
        member_fields: dict[str, Any] = {"member_id": "one", "generation": one.epoch}
        commit_in_all_versions(dialog, group, **member_fields)
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
            commit_in_all_versions(dialog, group, **(member_fields | changed))
        for epoch in one.epoch, one.epoch + 1, one.epoch - 1, 0, -1:
            fetch_in_all_versions(dialog, group, member_id="one", member_epoch=epoch)
        fetch_in_all_versions(dialog, group, member_id="nobody", member_epoch=one.epoch)
        fetch_in_all_versions(dialog, group, member_id="", member_epoch=-1)
        fetch_in_all_versions(dialog, group, member_id="nobody", member_epoch=1, topics=None)
        fetch_in_all_versions(dialog, group)
        one.leave()
        commit_in_all_versions(dialog, group, **member_fields)
        commit_in_all_versions(dialog, group)
        fetch_in_all_versions(dialog, group, member_id="one", member_epoch=one.epoch)

    assert_same_dialog(coordinators, script)


def test_deleting_offsets(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        for group in "delete-unknown", "":
            dialog.send(delete_offsets(group, PLAIN))
        group = "delete-empty"
        dialog.send(commit(dialog.side, 9, group, partitions=[0, 1]), 9)
        dialog.send(delete_offsets(group))
        dialog.send(delete_offsets(group, PLAIN, "unknown-to-both"))
        dialog.send(delete_offsets(group, PLAIN))
        dialog.send(delete_offsets(group, PLAIN, partitions=[99, 1, 1]))
        fetch_in_all_versions(dialog, group)
        dialog.send(delete_offsets(group, PLAIN))

    assert_same_dialog(coordinators, script)


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
def test_deleting_offsets_of_a_classic_group_with_members(
    coordinators: Sides, protocol_type: str, metadata: bytes
) -> None:
    def script(dialog: Dialog) -> None:
        group = f"delete-{protocol_type}-{metadata.hex()}"
        one = first_member(dialog, group, protocol_type=protocol_type, metadata=metadata)
        member_fields: dict[str, Any] = {"member_id": one.member_id, "generation": one.generation}
        dialog.send(commit(dialog.side, 9, group, **member_fields), 9)
        dialog.send(delete_offsets(group, PLAIN, "unknown-to-both"))
        dialog.send(fetch_offsets(dialog.side, 9, group), 9)

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("topics", [[PLAIN], ["other"]], ids=["subscribed", "not_subscribed"])
def test_deleting_offsets_of_a_consumer_group_with_members(
    coordinators: Sides, topics: list[str]
) -> None:
    def script(dialog: Dialog) -> None:
        group = f"delete-848-{topics[0]}"
        one = Consumer(dialog, group, "one").join(topics=topics)
        dialog.send(commit(dialog.side, 9, group, member_id="one", generation=one.epoch), 9)
        dialog.send(delete_offsets(group, PLAIN, "unknown-to-both"))
        dialog.send(fetch_offsets(dialog.side, 9, group), 9)

    assert_same_dialog(coordinators, script)


def test_offsets_of_a_deleted_topic(coordinators: Sides) -> None:
    """They are deleted with the topic."""

    def script(dialog: Dialog) -> None:
        create_topic(dialog.side, "committed-to", 2)
        group = "commits-deleted"
        dialog.send(commit(dialog.side, 9, group, topic="committed-to"), 9)
        dialog.send(commit(dialog.side, 9, group), 9)
        dialog.side.send(DeleteTopicsRequest(topic_names=["committed-to"], timeout_ms=10_000), 5)
        dialog.send_until(
            lambda: fetch_offsets(dialog.side, 9, group, topics=None),
            9,
            lambda response: len(response.groups[0].topics) == 1,
        )
        fetch_in_all_versions(dialog, group, topics=["committed-to"], start=FIRST_BATCHED)

    assert_same_dialog(coordinators, script)
