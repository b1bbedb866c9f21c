"""Changes the voters as the leader (KIP-853): adds, removes or updates one.

There is one change at a time, and only when the one before is committed: so every majority of
the old voters has a voter in common with every majority of the new ones.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from barnabas.raft.addresses import RequestOrigin
from barnabas.raft.control_records import voters_record
from barnabas.raft.driver import RaftDriver
from barnabas.raft.voters import ReplicaKey, VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.raft_records import KRaftVersionFeature
from barnabas.wire.messages.raft_voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    CurrentLeader,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.wire.peer import Peers
from barnabas.wire.uuid import ZERO

PURPOSE = "raft-membership"
KRAFT_VERSION_FEATURE = "kraft.version"

_CAUGHT_UP_WITHIN_MS = 3_600_000


@dataclass(slots=True, eq=False)
class _Change:
    """The change in progress, in the epoch that this node leads."""

    epoch: int
    done: "asyncio.Future[None]"
    # The offset of the new voters, once they are in the log.
    offset: int | None = None

    def end(self, error: KafkaError | None = None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class VoterChanges:
    """Handles AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter."""

    __slots__ = ("_driver", "_in_progress", "_peers")

    def __init__(self, driver: RaftDriver, peers: Peers) -> None:
        self._driver = driver
        self._peers = peers
        self._in_progress: _Change | None = None

    async def add(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        try:
            self._require_leader(request.cluster_id)
            voter = self._voter(request)
            await self._add(voter, request.ack_when_committed)
        except KafkaError as error:
            return AddRaftVoterResponse(error_code=error.code, error_message=error.message or None)
        return AddRaftVoterResponse(error_message=None)

    async def remove(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        try:
            self._require_leader(request.cluster_id)
            key = _key(request)
            await self._remove(key)
        except KafkaError as error:
            return RemoveRaftVoterResponse(
                error_code=error.code, error_message=error.message or None
            )
        return RemoveRaftVoterResponse(error_message=None)

    async def update(
        self, request: UpdateRaftVoterRequest, origin: RequestOrigin
    ) -> UpdateRaftVoterResponse:
        error = ErrorCode.NONE
        try:
            self._require_leader(request.cluster_id, request.current_leader_epoch)
            self._update(self._voter(request), request.k_raft_version_feature)
        except KafkaError as kafka_error:
            error = kafka_error.code
        raft, leader = self._driver.raft, self._driver.leader_at(origin.listener)
        return UpdateRaftVoterResponse(
            error_code=error,
            current_leader=CurrentLeader(
                leader_id=raft.leader_id,
                leader_epoch=raft.epoch,
                host=leader.host if leader else "",
                port=leader.port if leader else 0,
            ),
        )

    # The changes

    async def _add(self, voter: VoterNode, wait_for_commit: bool) -> None:
        voters = self._changeable_voters()
        if voters.get(voter.node_id) is not None:
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"Node {voter.node_id} is a voter already, of {voters.ids()}.",
            )
        change = self._begin()
        try:
            self._require_supported(*await self._supported_versions(voter, change))
            self._require_caught_up(voter.key)
            self._write(change, voters.with_voter(voter))
            if wait_for_commit:
                await change.done
            else:
                change.done.cancel()
        except BaseException:
            self._end(change)
            raise

    async def _remove(self, key: ReplicaKey) -> None:
        voters = self._changeable_voters()
        existing = voters.get(key.node_id)
        if existing is None or existing.key != key:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"No voter has the id {key.node_id} and that directory; the voters are "
                f"{voters.ids()}.",
            )
        if len(voters) == 1:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"Node {key.node_id} is the only voter: add another one first.",
            )
        change = self._begin()
        try:
            self._write(change, voters.without(key.node_id))
            await change.done
        except BaseException:
            self._end(change)
            raise

    def _update(self, voter: VoterNode, supported: KRaftVersionFeature) -> None:
        lowest, highest = supported.min_supported_version, supported.max_supported_version
        if not 0 <= lowest <= highest:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if self._driver.log.history.kraft_version == 0:
            # The request only reports the versions that the voter supports; voters are a setting.
            return
        voters = self._changeable_voters()
        self._require_supported(lowest, highest)
        existing = voters.get(voter.node_id)
        if existing is None or existing.key != voter.key:
            raise KafkaError(ErrorCode.VOTER_NOT_FOUND)
        # The sender does not wait for the commit: it sees the change in its log.
        self._append(voters.with_voter(voter))

    # Steps of a change

    def _require_leader(self, cluster_id: str | None, epoch: int | None = None) -> None:
        driver = self._driver
        error = driver.cluster_error(cluster_id)
        if error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise KafkaError(
                error,
                f'The given id "{cluster_id}" doesn\'t match the cluster id "{driver.cluster_id}"',
            )
        error = error or driver.raft.leadership.leader_error(
            driver.raft.epoch if epoch is None else epoch
        )
        if error is not ErrorCode.NONE:
            raise KafkaError(error)

    def _voter(self, request: AddRaftVoterRequest | UpdateRaftVoterRequest) -> VoterNode:
        key = _key(request)
        endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in request.listeners)
        name = self._driver.config.listener_name
        if name not in [endpoint.name for endpoint in endpoints]:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"The voter's listeners must include {name}."
            )
        return VoterNode(key.node_id, key.directory_id, endpoints)

    def _changeable_voters(self) -> VoterSet:
        """Returns the voters. Raises KafkaError if they cannot be changed now."""
        history, leader = self._driver.log.history, self._driver.leader_role
        if self._in_progress is not None:
            raise _retriable("another change of the voters is in progress.")
        if leader is None or leader.high_watermark < 0:
            raise _retriable("the leader has not committed anything of its epoch yet.")
        if history.kraft_version == 0:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The voters are those of controller.quorum.voters: {KRAFT_VERSION_FEATURE} is 0.",
            )
        if history.offset is None or history.offset >= leader.high_watermark:
            raise _retriable("the last change of the voters is not committed yet.")
        return history.voters

    def _begin(self) -> _Change:
        driver = self._driver
        change = _Change(driver.raft.epoch, asyncio.get_running_loop().create_future())
        self._in_progress = change
        driver.call_later(driver.config.request_timeout_ms, lambda: self._time_out(change))
        return change

    async def _supported_versions(self, voter: VoterNode, change: _Change) -> tuple[int, int]:
        """Requests from the new voter the versions of kraft.version that it supports."""
        address = self._driver.addresses.select(voter.endpoints)
        assert address is not None, "its listeners were checked"
        received: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def on_response(response: Any) -> None:
            if not received.done():
                received.set_result(response)

        peer = self._peers.at(address.host, address.port, PURPOSE)
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
        peer.send(request, self._driver.config.request_timeout_ms, on_response)
        await asyncio.wait([received, change.done], return_when=asyncio.FIRST_COMPLETED)
        if change.done.done():
            change.done.result()
        response = received.result()
        if not isinstance(response, ApiVersionsResponse) or response.error_code:
            raise _retriable(
                f"node {voter.node_id} does not respond at {address.host}:{address.port}."
            )
        for feature in response.supported_features:
            if feature.name == KRAFT_VERSION_FEATURE:
                return feature.min_version, feature.max_version
        return 0, 0

    def _require_supported(self, lowest: int, highest: int) -> None:
        version = self._driver.log.history.kraft_version
        if not lowest <= version <= highest:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The voter supports {KRAFT_VERSION_FEATURE} {lowest} to {highest}, "
                f"the cluster has {version}.",
            )

    def _require_caught_up(self, key: ReplicaKey) -> None:
        """Raises KafkaError unless the new voter is caught up: it would delay every commit."""
        leader, now_ms = self._driver.leader_role, self._driver.now_ms
        if leader is not None:
            for observer in leader.progress.observers_progress(now_ms):
                is_recent = observer.last_fetch_ms > now_ms - _CAUGHT_UP_WITHIN_MS
                if observer.key == key and observer.last_caught_up_ms >= 0 and is_recent:
                    return
        raise _retriable(f"node {key.node_id} has not caught up with the log yet.")

    def _write(self, change: _Change, voters: VoterSet) -> None:
        driver = self._driver
        if not driver.raft.is_leader or driver.raft.epoch != change.epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        change.offset = self._append(voters)

    def _append(self, voters: VoterSet) -> int:
        driver = self._driver
        try:
            offset = driver.append_control([voters_record(voters)], driver.raft.epoch)
        except OSError as error:
            driver.fail(error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        driver.step_soon()
        return offset

    # Completion

    def advance(self) -> None:
        change, raft = self._in_progress, self._driver.raft
        if change is None:
            return
        if change.offset is not None and raft.high_watermark > change.offset:
            change.end()
        elif not raft.is_leader or raft.epoch != change.epoch:
            change.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            return
        self._end(change)

    def _time_out(self, change: _Change) -> None:
        change.end(_retriable("the new voters were not committed in time; they may still be."))
        self._end(change)

    def _end(self, change: _Change) -> None:
        change.done.cancel()  # no effect if it has ended; otherwise nothing waits for it
        if self._in_progress is change:
            self._in_progress = None

    def close(self) -> None:
        if self._in_progress is not None:
            self._in_progress.end(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE))


def _key(
    request: AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest,
) -> ReplicaKey:
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A voter is named by its node id and its directory id."
        )
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def _retriable(reason: str) -> KafkaError:
    """Returns the error that Kafka sends if a retry may succeed."""
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Try again later: {reason}")
