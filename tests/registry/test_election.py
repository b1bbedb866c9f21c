"""Who writes: elected by a pure function, heard of by a member that is stepped by hand."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.registry.election import DUPLICATE_URLS, ElectionOutcome, InstanceIdentity, elect
from barnabas.registry.membership import GroupMembership
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.schema import Message


def members(*identities: InstanceIdentity) -> dict[str, bytes]:
    return {f"m{index}": identity.encode() for index, identity in enumerate(identities)}


def test_the_first_instance_by_url_is_elected() -> None:
    outcome = elect(
        members(InstanceIdentity("b", 1), InstanceIdentity("a", 2), InstanceIdentity("a", 3))
    )
    assert (outcome.member_id, outcome.identity) == ("m1", InstanceIdentity("a", 2))


def test_a_member_that_is_no_registry_does_not_prevent_an_election() -> None:
    for foreign in (b"", b"?", b"[]", b"{}", b'{"host":1,"port":1}', b"[" * 100_000):
        assert elect({"x": foreign, **members(InstanceIdentity("a", 1))}) == ElectionOutcome(
            "m0", InstanceIdentity("a", 1)
        )


def test_the_present_leader_stays_the_leader() -> None:
    assert (
        elect(members(InstanceIdentity("a", 1), InstanceIdentity("b", 1, is_leader=True))).member_id
        == "m1"
    )


def test_of_two_instances_that_both_claim_to_lead_the_first_is_elected() -> None:
    both = members(
        InstanceIdentity("b", 1, is_leader=True),
        InstanceIdentity("a", 1, is_leader=True),
        InstanceIdentity("0", 1),
    )
    assert elect(both).member_id == "m2"


def test_an_instance_that_is_not_eligible_is_never_elected() -> None:
    assert elect(members(InstanceIdentity("a", 1, is_eligible=False))) == ElectionOutcome(
        None, None
    )
    assert (
        elect(
            members(InstanceIdentity("a", 1, is_eligible=False), InstanceIdentity("b", 1))
        ).member_id
        == "m1"
    )


def test_two_instances_with_one_url_are_reported_as_an_error() -> None:
    assert (
        elect(members(InstanceIdentity("a", 1), InstanceIdentity("a", 1))).error == DUPLICATE_URLS
    )


def test_identities_and_outcomes_have_confluents_json() -> None:
    written = json.loads(InstanceIdentity("a", 1).encode())
    assert written == {
        "version": 1,
        "host": "a",
        "port": 1,
        "master_eligibility": True,
        "scheme": "http",
        "leader": False,
    }
    theirs = (
        b'{"version":1,"error":0,"master":"x","master_identity":'
        + InstanceIdentity("b", 2).encode()
    )
    assert ElectionOutcome.decode(theirs + b"}") == ElectionOutcome("x", InstanceIdentity("b", 2))
    assert ElectionOutcome.decode(
        ElectionOutcome("x", InstanceIdentity("b", 2)).encode()
    ) == ElectionOutcome("x", InstanceIdentity("b", 2))


class Group:
    """A coordinator: gives the answers that were laid out, in their order, and then waits."""

    def __init__(
        self, *answers: Message | KafkaError, before: Sequence[DescribedGroupMember] = ()
    ) -> None:
        self._answers = list(answers)
        self._before = list(before)
        self.asked: list[Message] = []
        self.is_empty = asyncio.Event()

    async def __call__(self, request: Message, timeout_ms: int) -> Any:
        if isinstance(request, DescribeGroupsRequest):
            return DescribeGroupsResponse(groups=[DescribedGroup(members=self._before)])
        self.asked.append(request)
        if not self._answers:
            self.is_empty.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, KafkaError):
            raise KafkaException(answer)
        return answer


Heard = list[str | None]


def heard_of(
    *answers: Message | KafkaError, before: Sequence[DescribedGroupMember] = ()
) -> tuple[Heard, list[Message]]:
    """What a member is told while it gets these answers, and what it asked."""
    return asyncio.run(_heard_of(Group(*answers, before=before)))


async def _heard_of(group: Group) -> tuple[Heard, list[Message]]:
    heard = Heard()

    async def elected(outcome: ElectionOutcome | None, member_id: str) -> None:
        heard.append(None if outcome is None else outcome.member_id)

    told: Callable[[ElectionOutcome | None, str], Awaitable[None]] = elected
    # Beats follow each other at once.
    member = GroupMembership("g", InstanceIdentity("a", 1), group, told, session_timeout_ms=3)
    running = asyncio.create_task(member.run())
    await asyncio.wait_for(group.is_empty.wait(), 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return heard, group.asked


def joined(leader: str = "m0") -> JoinGroupResponse:
    others = [JoinGroupResponseMember(member_id="m0", metadata=InstanceIdentity("a", 1).encode())]
    return JoinGroupResponse(
        generation_id=1, protocol_name="v0", leader=leader, member_id="m0", members=others
    )


def synced(writer: str = "m0") -> SyncGroupResponse:
    return SyncGroupResponse(assignment=ElectionOutcome(writer, InstanceIdentity("a", 1)).encode())


def beaten(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


@pytest.mark.parametrize(
    ("answers", "heard"),
    [
        ([joined(), synced()], ["m0"]),
        (
            [
                JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m0"),
                joined(),
                synced("other"),
            ],
            ["other"],
        ),
        (
            [
                joined(),
                synced(),
                beaten(ErrorCode.REBALANCE_IN_PROGRESS),
                joined(),
                synced("other"),
            ],
            ["m0", "other"],
        ),
        (
            [joined(), synced(), beaten(ErrorCode.UNKNOWN_MEMBER_ID), joined(), synced("other")],
            ["m0", None, "other"],
        ),
        (
            [
                joined(),
                SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
                joined(),
                synced(),
            ],
            ["m0"],
        ),
        ([KafkaError(KafkaError._TRANSPORT), joined(), synced()], [None, "m0"]),
        ([joined(), SyncGroupResponse(assignment=b"?"), joined(), synced()], [None, "m0"]),
        ([joined(), synced(), beaten(ErrorCode.NONE), beaten(ErrorCode.NONE)], ["m0"]),
    ],
)
def test_a_member_reports_the_elected_leader(
    answers: list[Message | KafkaError], heard: Heard
) -> None:
    assert heard_of(*answers)[0] == heard


def test_the_leader_of_the_group_elects_and_the_others_do_not() -> None:
    _, asked = heard_of(joined(), synced())
    join, sync, beat = asked
    assert isinstance(join, JoinGroupRequest)
    assert (join.protocol_type, join.protocols[0].name) == ("sr", "v0")
    assert isinstance(sync, SyncGroupRequest)
    assert ElectionOutcome.decode(bytes(sync.assignments[0].assignment)).member_id == "m0"
    assert isinstance(beat, HeartbeatRequest)
    _, (_, sync, _) = heard_of(joined(leader="m1"), synced())
    assert isinstance(sync, SyncGroupRequest)
    assert sync.assignments == []


def test_an_instance_removes_a_dead_member_that_had_its_address() -> None:
    before = [
        DescribedGroupMember(member_id=id_, member_metadata=content)
        for id_, content in members(InstanceIdentity("b", 1), InstanceIdentity("a", 1)).items()
    ]
    for joining_or_foreign in (b"", b"\0\1\0", b"[]", b"{}"):
        before.append(DescribedGroupMember(member_id="x", member_metadata=joining_or_foreign))
    _, asked = heard_of(LeaveGroupResponse(), joined(), synced(), before=before)
    leave = asked[0]
    assert isinstance(leave, LeaveGroupRequest)
    assert [member.member_id for member in leave.members] == ["m1"]
    assert isinstance(asked[1], JoinGroupRequest)


def test_a_dead_leader_is_removed_before_its_session_ends() -> None:
    heard, asked = asyncio.run(_burial())
    assert heard == ["other", None, "m0"]
    assert [member.member_id for leave in asked for member in leave.members] == ["other"]


async def _burial() -> tuple[Heard, list[LeaveGroupRequest]]:
    heard, asked = Heard(), list[LeaveGroupRequest]()
    writers, is_heard = ["other", "m0"], asyncio.Event()

    async def coordinator(request: Message, timeout_ms: int) -> Any:
        match request:
            case DescribeGroupsRequest():
                return DescribeGroupsResponse()
            case JoinGroupRequest():
                return joined()
            case SyncGroupRequest():
                return synced(writers.pop(0))
            case LeaveGroupRequest():
                asked.append(request)
                return LeaveGroupResponse()
        return beaten(ErrorCode.NONE)

    async def elected(outcome: ElectionOutcome | None, member_id: str) -> None:
        heard.append(None if outcome is None else outcome.member_id)
        is_heard.set()

    member = GroupMembership(
        "g", InstanceIdentity("a", 1), coordinator, elected, session_timeout_ms=60_000
    )
    running = asyncio.create_task(member.run())
    await asyncio.wait_for(is_heard.wait(), 60)
    await member.remove_leader()
    while len(heard) < 3:
        is_heard.clear()
        await asyncio.wait_for(is_heard.wait(), 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return heard, asked
