"""Changes of the voters, asked of the leader (KIP-853): add one, remove one, update one.

One at a time, and only once the one before is committed: so every majority of the old voters
meets every majority of the new ones.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from barnabas.raft.control_records import new_voters
from barnabas.raft.driver import RaftDriver
from barnabas.raft.voters import ReplicaKey, VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.wire.messages.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.wire.peer import Peers
from barnabas.wire.uuid import ZERO

PURPOSE = "raft-membership"
FEATURE = "kraft.version"

_CAUGHT_UP_WITHIN_MS = 3_600_000


@dataclass(slots=True, eq=False)
class _Change:
    """The one that is under way, in the epoch that this node leads."""

    epoch: int
    done: "asyncio.Future[None]"
    # Where the new voters stand in the log, once they do.
    offset: int | None = None

    def end(self, error: KafkaError | None = None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class VoterChanges:
    """What the leader does about requests for other voters."""

    __slots__ = ("_driver", "_peers", "_under_way")

    def __init__(self, driver: RaftDriver, peers: Peers) -> None:
        self._driver = driver
        self._peers = peers
        self._under_way: _Change | None = None

    async def add(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        try:
            self._check_leads(request.cluster_id)
            voter = self._voter(request)
            await self._add(voter, request.ack_when_committed)
        except KafkaError as error:
            return AddRaftVoterResponse(error_code=error.code, error_message=error.message or None)
        return AddRaftVoterResponse(error_message=None)

    async def remove(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        try:
            self._check_leads(request.cluster_id)
            key = _key(request)
            await self._remove(key)
        except KafkaError as error:
            return RemoveRaftVoterResponse(
                error_code=error.code, error_message=error.message or None
            )
        return RemoveRaftVoterResponse(error_message=None)

    async def update(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        error = ErrorCode.NONE
        try:
            self._check_leads(request.cluster_id, request.current_leader_epoch)
            self._update(self._voter(request), request.k_raft_version_feature)
        except KafkaError as refused:
            error = refused.code
        raft, leader = self._driver.raft, self._driver.leader
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
        voters = self._settled_voters()
        if voters.get(voter.node_id) is not None:
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"Node {voter.node_id} is a voter already, of {voters.ids()}.",
            )
        change = self._begin()
        try:
            self._check_range(*await self._supported(voter, change))
            self._check_caught_up(voter.key)
            self._write(change, voters.with_voter(voter))
            if wait_for_commit:
                await change.done
            else:
                change.done.cancel()
        except BaseException:
            self._end(change)
            raise

    async def _remove(self, key: ReplicaKey) -> None:
        voters = self._settled_voters()
        known = voters.get(key.node_id)
        if known is None or known.key != key:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"No voter has the id {key.node_id} and that directory; the voters are "
                f"{voters.ids()}.",
            )
        if len(voters) == 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
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
            # Told so that a leader could raise the version; the voters are a setting.
            return
        voters = self._settled_voters()
        self._check_range(lowest, highest)
        known = voters.get(voter.node_id)
        if known is None or known.key != voter.key:
            raise KafkaError(ErrorCode.VOTER_NOT_FOUND)
        # The sender does not wait for the commit: its next fetches tell it.
        self._append(voters.with_voter(voter))

    # What they consist of

    def _check_leads(self, cluster_id: str | None, epoch: int | None = None) -> None:
        driver = self._driver
        refused = driver.cluster_error(cluster_id)
        if refused is ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise KafkaError(
                refused,
                f"This is cluster {driver.cluster_id}, not {cluster_id}: see meta.properties.",
            )
        refused = refused or driver.raft.leadership.leader_error(
            driver.raft.epoch if epoch is None else epoch
        )
        if refused is not ErrorCode.NONE:
            raise KafkaError(refused)

    def _voter(self, request: AddRaftVoterRequest | UpdateRaftVoterRequest) -> VoterNode:
        key = _key(request)
        endpoints = tuple(
            VoterEndpoint(each.name, each.host, each.port) for each in request.listeners
        )
        name = self._driver.config.listener_name
        if name not in [each.name for each in endpoints]:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"The voter's listeners must include {name}."
            )
        return VoterNode(key.node_id, key.directory_id, endpoints)

    def _settled_voters(self) -> VoterSet:
        """The voters, where nothing stands in the way of changing them."""
        history, leader = self._driver.log.history, self._driver.leader_role
        if self._under_way is not None:
            raise _later("another change of the voters is under way.")
        if leader is None or leader.high_watermark < 0:
            raise _later("the leader has not committed anything of its epoch yet.")
        if history.kraft_version == 0:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The voters are those of controller.quorum.voters: {FEATURE} is 0.",
            )
        if history.offset is None or history.offset >= leader.high_watermark:
            raise _later("the last change of the voters is not committed yet.")
        return history.voters

    def _begin(self) -> _Change:
        driver = self._driver
        change = _Change(driver.raft.epoch, asyncio.get_running_loop().create_future())
        self._under_way = change
        driver.call_later(driver.config.request_timeout_ms, lambda: self._give_up(change))
        return change

    async def _supported(self, voter: VoterNode, change: _Change) -> tuple[int, int]:
        """Ask the new voter itself which kraft.version it supports."""
        address = self._driver.addresses.select(voter.endpoints)
        assert address is not None, "its listeners were checked"
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def take(answer: Any) -> None:
            if not answered.done():
                answered.set_result(answer)

        peer = self._peers.at(address.host, address.port, PURPOSE)
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
        peer.send(request, self._driver.config.request_timeout_ms, take)
        await asyncio.wait([answered, change.done], return_when=asyncio.FIRST_COMPLETED)
        if change.done.done():
            change.done.result()
        answer = answered.result()
        if not isinstance(answer, ApiVersionsResponse) or answer.error_code:
            raise _later(f"node {voter.node_id} does not answer at {address.host}:{address.port}.")
        for feature in answer.supported_features:
            if feature.name == FEATURE:
                return feature.min_version, feature.max_version
        return 0, 0

    def _check_range(self, lowest: int, highest: int) -> None:
        version = self._driver.log.history.kraft_version
        if not lowest <= version <= highest:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The voter supports {FEATURE} {lowest} to {highest}, the cluster has {version}.",
            )

    def _check_caught_up(self, key: ReplicaKey) -> None:
        """A voter that lags would hold up every commit."""
        leader, now_ms = self._driver.leader_role, self._driver.now_ms
        if leader is not None:
            for each in leader.progress.observers_progress(now_ms):
                is_recent = each.last_fetch_ms > now_ms - _CAUGHT_UP_WITHIN_MS
                if each.key == key and each.last_caught_up_ms >= 0 and is_recent:
                    return
        raise _later(f"node {key.node_id} has not caught up with the log yet.")

    def _write(self, change: _Change, voters: VoterSet) -> None:
        driver = self._driver
        if not driver.raft.is_leader or driver.raft.epoch != change.epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        change.offset = self._append(voters)

    def _append(self, voters: VoterSet) -> int:
        driver = self._driver
        try:
            offset = driver.append_control([new_voters(voters)], driver.raft.epoch)
        except OSError as error:
            driver.fail(error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        driver.step_soon()
        return offset

    # How they end

    def advance(self) -> None:
        change, raft = self._under_way, self._driver.raft
        if change is None:
            return
        if change.offset is not None and raft.high_watermark > change.offset:
            change.end()
        elif not raft.is_leader or raft.epoch != change.epoch:
            change.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            return
        self._end(change)

    def _give_up(self, change: _Change) -> None:
        change.end(_later("the new voters were not committed in time; they may still be."))
        self._end(change)

    def _end(self, change: _Change) -> None:
        change.done.cancel()  # of no effect where it has ended; otherwise nobody waits for it
        if self._under_way is change:
            self._under_way = None

    def close(self) -> None:
        if self._under_way is not None:
            self._under_way.end(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE))


def _key(
    request: AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest,
) -> ReplicaKey:
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A voter is named by its node id and its directory id."
        )
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def _later(reason: str) -> KafkaError:
    """What Kafka answers where trying again may help."""
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Try again later: {reason}")
