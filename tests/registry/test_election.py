"""Elections: the pure function, and a member with a scripted coordinator."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.registry.election import DUPLICATE_URLS, ElectionOutcome, InstanceIdentity, elect
from barnabas.registry.membership import RegistryMembership
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
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
    """A coordinator that returns the given responses in order, and then blocks."""

    def __init__(
        self, *responses: Message | KafkaError, before: Sequence[DescribedGroupMember] = ()
    ) -> None:
        self._answers = list(responses)
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
        response = self._answers.pop(0)
        if isinstance(response, KafkaError):
            raise KafkaException(response)
        return response


Outcomes = list[str | None]


def run_member(
    *responses: Message | KafkaError, before: Sequence[DescribedGroupMember] = ()
) -> tuple[Outcomes, list[Message]]:
    """Runs a member with these responses. Returns reported leaders, and the member's requests."""
    return asyncio.run(_run_member(Group(*responses, before=before)))


async def _run_member(group: Group) -> tuple[Outcomes, list[Message]]:
    outcomes = Outcomes()

    async def on_election(outcome: ElectionOutcome | None, member_id: str) -> None:
        outcomes.append(None if outcome is None else outcome.member_id)

    expected: Callable[[ElectionOutcome | None, str], Awaitable[None]] = on_election
    # Heartbeats follow each other without a pause.
    member = RegistryMembership(
        "g", InstanceIdentity("a", 1), group, expected, session_timeout_ms=3
    )
    running = asyncio.create_task(member.run())
    await asyncio.wait_for(group.is_empty.wait(), 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return outcomes, group.asked


def joined(leader: str = "m0") -> JoinGroupResponse:
    others = [JoinGroupResponseMember(member_id="m0", metadata=InstanceIdentity("a", 1).encode())]
    return JoinGroupResponse(
        generation_id=1, protocol_name="v0", leader=leader, member_id="m0", members=others
    )


def synced(leader_id: str = "m0") -> SyncGroupResponse:
    return SyncGroupResponse(
        assignment=ElectionOutcome(leader_id, InstanceIdentity("a", 1)).encode()
    )


def heartbeat_response(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


@pytest.mark.parametrize(
    ("responses", "outcomes"),
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
                heartbeat_response(ErrorCode.REBALANCE_IN_PROGRESS),
                joined(),
                synced("other"),
            ],
            ["m0", "other"],
        ),
        (
            [
                joined(),
                synced(),
                heartbeat_response(ErrorCode.UNKNOWN_MEMBER_ID),
                joined(),
                synced("other"),
            ],
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
        (
            [
                joined(),
                synced(),
                heartbeat_response(ErrorCode.NONE),
                heartbeat_response(ErrorCode.NONE),
            ],
            ["m0"],
        ),
    ],
)
def test_a_member_reports_the_elected_leader(
    responses: list[Message | KafkaError], outcomes: Outcomes
) -> None:
    assert run_member(*responses)[0] == outcomes


def test_the_leader_of_the_group_elects_and_the_others_do_not() -> None:
    _, requests = run_member(joined(), synced())
    join, sync, beat = requests
    assert isinstance(join, JoinGroupRequest)
    assert (join.protocol_type, join.protocols[0].name) == ("sr", "v0")
    assert isinstance(sync, SyncGroupRequest)
    assert ElectionOutcome.decode(bytes(sync.assignments[0].assignment)).member_id == "m0"
    assert isinstance(beat, HeartbeatRequest)
    _, (_, sync, _) = run_member(joined(leader="m1"), synced())
    assert isinstance(sync, SyncGroupRequest)
    assert sync.assignments == []


def test_an_instance_removes_a_dead_member_that_had_its_address() -> None:
    before = [
        DescribedGroupMember(member_id=id_, member_metadata=content)
        for id_, content in members(InstanceIdentity("b", 1), InstanceIdentity("a", 1)).items()
    ]
    for joining_or_foreign in (b"", b"\0\1\0", b"[]", b"{}"):
        before.append(DescribedGroupMember(member_id="x", member_metadata=joining_or_foreign))
    _, requests = run_member(LeaveGroupResponse(), joined(), synced(), before=before)
    leave = requests[0]
    assert isinstance(leave, LeaveGroupRequest)
    assert [member.member_id for member in leave.members] == ["m1"]
    assert isinstance(requests[1], JoinGroupRequest)


def test_a_dead_leader_is_removed_before_its_session_ends() -> None:
    outcomes, requests = asyncio.run(_remove_leader())
    assert outcomes == ["other", None, "m0"]
    assert [member.member_id for leave in requests for member in leave.members] == ["other"]


async def _remove_leader() -> tuple[Outcomes, list[LeaveGroupRequest]]:
    outcomes, requests = Outcomes(), list[LeaveGroupRequest]()
    leaders, is_reported = ["other", "m0"], asyncio.Event()

    async def coordinator(request: Message, timeout_ms: int) -> Any:
        match request:
            case DescribeGroupsRequest():
                return DescribeGroupsResponse()
            case JoinGroupRequest():
                return joined()
            case SyncGroupRequest():
                return synced(leaders.pop(0))
            case LeaveGroupRequest():
                requests.append(request)
                return LeaveGroupResponse()
        return heartbeat_response(ErrorCode.NONE)

    async def on_election(outcome: ElectionOutcome | None, member_id: str) -> None:
        outcomes.append(None if outcome is None else outcome.member_id)
        is_reported.set()

    member = RegistryMembership(
        "g", InstanceIdentity("a", 1), coordinator, on_election, session_timeout_ms=60_000
    )
    running = asyncio.create_task(member.run())
    await asyncio.wait_for(is_reported.wait(), 60)
    await member.remove_leader()
    while len(outcomes) < 3:
        is_reported.clear()
        await asyncio.wait_for(is_reported.wait(), 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return outcomes, requests
