"""Offsets that are committed in transactions."""

from typing import Any

import pytest
from tests.conformance.side_by_side.consumers import Consumer
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import first_member
from tests.conformance.side_by_side.offsets import fetch_offsets
from tests.conformance.side_by_side.sides import Sides, is_encodable
from tests.conformance.side_by_side.transactions import (
    Producer,
    describe,
    invalid_producers,
    new_producer,
)

pytestmark = pytest.mark.peer


def test_offsets_in_a_transaction(coordinators: Sides) -> None:
    """They are visible after a commit, unstable before, and dropped by an abort."""

    def script(dialog: Dialog) -> None:
        group = "txn-offsets"
        one = new_producer(dialog, group)
        for number, commits in enumerate((True, False)):
            dialog.send_with_retries(one.commit_offsets(group, 10 + number), 5)
            describe(dialog, group)
            for stable in False, True:
                for version in range(7, 11):
                    requested = fetch_offsets(dialog.side, version, group, require_stable=stable)
                    dialog.send(requested, version)
                requested = fetch_offsets(dialog.side, 9, group, topics=None, require_stable=stable)
                dialog.send(requested, 9)
            ended = dialog.send_with_retries(one.end(commits), 5)
            one = one.with_changes(epoch=ended.producer_epoch)
            dialog.send_until(
                lambda: fetch_offsets(dialog.side, 9, group, require_stable=True),
                9,
                lambda response: response.groups[0].topics[0].partitions[0].error_code == 0,
            )

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("version", range(6))
def test_invalid_offset_commits_of_a_transaction(coordinators: Sides, version: int) -> None:
    def script(dialog: Dialog) -> None:
        group = f"txn-invalid-{version}"
        new_producer(dialog, group)
        one = new_producer(dialog, group)

        def commit_offsets(producer: Producer, in_group: str = group, **fields: Any) -> None:
            request = producer.commit_offsets(in_group, **fields)
            if is_encodable(request, version):
                dialog.send_with_retries(request, version)

        commit_offsets(one)
        dialog.send(one.add_group(group), 3)
        commit_offsets(one)
        for producer in invalid_producers(one):
            commit_offsets(producer)
        commit_offsets(one, topic="unknown-to-both")
        commit_offsets(one, partitions=[99, 0])
        commit_offsets(one, metadata="m" * 5000)
        commit_offsets(one, metadata=None)
        commit_offsets(one, offset=-1)
        commit_offsets(one, in_group="")
        commit_offsets(one, member_id="nobody", generation=1)
        commit_offsets(one, member_id="nobody")
        commit_offsets(one, generation=1)
        commit_offsets(one, instance="nobody")
        describe(dialog, group)
        dialog.send_with_retries(one.end(True), 4)

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("version", range(3, 6))
def test_offset_commits_of_a_transaction_by_group_members(
    coordinators: Sides, version: int
) -> None:
    """KIP-447: the group's generation is checked too."""

    def script(dialog: Dialog) -> None:
        group = f"txn-members-{version}"
        member = first_member(dialog, group, instance="i")
        consumers = f"txn-848-{version}"
        consumer = Consumer(dialog, consumers, "one").join()
        one = new_producer(dialog, group)
        dialog.send(one.add_group(group), 3)
        dialog.send_with_retries(one.add_group(consumers), 3)

        def commit_offsets(in_group: str, **fields: Any) -> None:
            request = one.commit_offsets(in_group, **fields)
            dialog.send_with_retries(request, version)

        member_fields: dict[str, Any] = {
            "member_id": member.member_id,
            "generation": member.generation,
        }
        for changed in (
            {},
            {"instance": "i"},
            {"instance": "j"},
            {"generation": 7},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": "nobody", "instance": "i"},
            {"member_id": "", "generation": -1},
        ):
            commit_offsets(group, **(member_fields | changed))
        for changed in (
            {},
            {"generation": 7},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": "", "generation": -1},
        ):
            commit_offsets(
                consumers, **({"member_id": "one", "generation": consumer.epoch} | changed)
            )
        dialog.send_with_retries(one.end(False), 4)

    assert_same_dialog(coordinators, script)
