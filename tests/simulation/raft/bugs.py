"""Bugs in the consensus that the checkers must find."""

from tests.simulation.planted import Bug

BUGS = [
    Bug(
        "vote-twice",
        "raft/election.py",
        """            case Unattached() as role if role.voted_key is None:
                role.voted_key = candidate
""",
        """            case Unattached() as role if role.voted_key is None:
""",
    ),
    Bug(
        "vote-for-shorter-logs",
        "raft/election.py",
        "up_to_date = (request.last_epoch, request.last_offset) >= own_end",
        "up_to_date = (request.last_epoch, request.last_offset) >= (0, 0)",
    ),
    Bug(
        "longest-log-wins",
        "raft/election.py",
        "up_to_date = (request.last_epoch, request.last_offset) >= own_end",
        "up_to_date = request.last_offset >= own_end[1]",
    ),
    Bug(
        "respond-before-persist",
        "raft/election.py",
        """                role.timeout_at_ms = now_ms + timeout_ms()
        self._node.persist_state()
""",
        """                role.timeout_at_ms = now_ms + timeout_ms()
""",
    ),
    Bug(
        "forget-vote-by-restart",
        "raft/raft_node.py",
        "return Unattached(epoch, leader_id, state.voted_key, election_at_ms)",
        "return Unattached(epoch, leader_id, None, election_at_ms)",
    ),
    Bug(
        "lead-again-after-restart",
        "raft/raft_node.py",
        "return Resigned(epoch, leader_id, (), self.other_voter_ids(), election_at_ms)",
        "return Unattached(epoch, election_at_ms=election_at_ms)",
    ),
    Bug(
        "candidate-without-new-epoch",
        "raft/raft_node.py",
        """            self.epoch + 1,
            VoteTally(""",
        """            max(1, self.epoch),
            VoteTally(""",
    ),
    Bug(
        "no-election-retry",
        "raft/raft_node.py",
        "Unattached(self.epoch, voted_key=voted_key, election_at_ms=election_at_ms)",
        "Unattached(self.epoch, voted_key=voted_key)",
    ),
    Bug(
        "commit-old-epochs",
        "raft/leadership.py",
        "if majority_end_offset > max(leader.start_offset, leader.high_watermark):",
        "if majority_end_offset > leader.high_watermark:",
    ),
    Bug(
        "count-own-undurable-end",
        "raft/leadership.py",
        "progress.end_offset = node.durable_end_offset",
        "progress.end_offset = node.log.end_offset",
    ),
    Bug(
        "majority-of-half",
        "raft/voters.py",
        "return len(self._by_id.keys() & set(node_ids)) > len(self._by_id) // 2",
        "return len(self._by_id.keys() & set(node_ids)) >= len(self._by_id) / 2",
    ),
    Bug(
        "commit-by-one-too-few",
        "raft/voters.py",
        "return reached[len(reached) // 2]",
        "return reached[(len(reached) - 1) // 2]",
    ),
    Bug(
        "follow-older-leaders",
        "raft/raft_node.py",
        "        elif epoch == self.epoch and is_other:",
        "        elif is_other:",
    ),
    Bug(
        "no-divergence",
        "raft/leadership.py",
        "if end.epoch != last_fetched_epoch or end.end_offset < offset:",
        "if end.end_offset < offset:",
    ),
    Bug(
        "truncate-too-far",
        "raft/leadership.py",
        "        return FetchOutcome(diverging=end)",
        "        return FetchOutcome(diverging=EpochEndOffset(end.epoch, log.start_offset))",
    ),
    Bug(
        "pre-vote-granted-always",
        "raft/election.py",
        "return request.pre_vote and up_to_date and not follower.is_leader_reachable",
        "return request.pre_vote and up_to_date",
    ),
    Bug(
        "leader-grants-pre-votes",
        "raft/election.py",
        """            case Leader():
                return False
""",
        """            case Leader():
                return request.pre_vote
""",
    ),
    Bug(
        "old-voters-still-counted",
        "raft/leadership.py",
        "        leader.progress.update_voters(self._node.voters)\n",
        "",
    ),
]
