"""Offsets that are committed in transactions."""

from typing import Any

import pytest
from tests.conformance.same.consumers import Consumer
from tests.conformance.same.groups import first_member
from tests.conformance.same.offsets import fetched
from tests.conformance.same.sides import Sides, can_carry
from tests.conformance.same.talk import Talk, agree
from tests.conformance.same.transactions import Producer, describe, new_producer, strangers

pytestmark = pytest.mark.peer


def test_offsets_in_a_transaction(coordinators: Sides) -> None:
    """Seen when it commits, unstable before, gone when it aborts."""

    def conversation(talk: Talk) -> None:
        group = "txn-offsets"
        one = new_producer(talk, group)
        for number, commits in enumerate((True, False)):
            talk.ask_patiently(one.commit_offsets(group, 10 + number), 5)
            describe(talk, group)
            for stable in False, True:
                for version in range(7, 11):
                    asked = fetched(talk.side, version, group, require_stable=stable)
                    talk.ask(asked, version)
                asked = fetched(talk.side, 9, group, topics=None, require_stable=stable)
                talk.ask(asked, 9)
            ended = talk.ask_patiently(one.end(commits), 5)
            one = one.but(epoch=ended.producer_epoch)
            talk.ask_until(
                lambda: fetched(talk.side, 9, group, require_stable=True),
                9,
                lambda answer: answer.groups[0].topics[0].partitions[0].error_code == 0,
            )

    agree(coordinators, conversation)


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_a_transaction_that_are_refused(coordinators: Sides, version: int) -> None:
    def conversation(talk: Talk) -> None:
        group = f"txn-refused-{version}"
        new_producer(talk, group)
        one = new_producer(talk, group)

        def ask(who: Producer, in_group: str = group, **fields: Any) -> None:
            request = who.commit_offsets(in_group, **fields)
            if can_carry(request, version):
                talk.ask_patiently(request, version)

        ask(one)
        talk.ask(one.add_group(group), 3)
        ask(one)
        for who in strangers(one):
            ask(who)
        ask(one, topic="unknown-to-both")
        ask(one, partitions=[99, 0])
        ask(one, metadata="m" * 5000)
        ask(one, metadata=None)
        ask(one, offset=-1)
        ask(one, in_group="")
        ask(one, member_id="nobody", generation=1)
        ask(one, member_id="nobody")
        ask(one, generation=1)
        ask(one, instance="nobody")
        describe(talk, group)
        talk.ask_patiently(one.end(True), 4)

    agree(coordinators, conversation)


@pytest.mark.parametrize("version", range(3, 6))
def test_offsets_of_a_transaction_by_members(coordinators: Sides, version: int) -> None:
    """KIP-447: the group's generation is checked too."""

    def conversation(talk: Talk) -> None:
        group = f"txn-members-{version}"
        member = first_member(talk, group, instance="i")
        consumers = f"txn-848-{version}"
        consumer = Consumer(talk, consumers, "one").join()
        one = new_producer(talk, group)
        talk.ask(one.add_group(group), 3)
        talk.ask_patiently(one.add_group(consumers), 3)

        def ask(in_group: str, **fields: Any) -> None:
            request = one.commit_offsets(in_group, **fields)
            talk.ask_patiently(request, version)

        known: dict[str, Any] = {"member_id": member.member_id, "generation": member.generation}
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
            ask(group, **(known | changed))
        for changed in (
            {},
            {"generation": 7},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": "", "generation": -1},
        ):
            ask(consumers, **({"member_id": "one", "generation": consumer.epoch} | changed))
        talk.ask_patiently(one.end(False), 4)

    agree(coordinators, conversation)
