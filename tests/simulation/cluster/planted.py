"""Bugs to plant into a copy of the source: for each, some checker must find out.

    python -m tests.simulation.cluster.planted [--seeds 300] [NAME ...]

The bugs are edits of the source. One that no longer fits the source is told of: mend it here.
"""

import sys

from tests.simulation.planted import Bug, main

QUORUM = [
    Bug(
        "votes-for-anybody",
        "raft/election.py",
        "up_to_date = (request.last_epoch, request.last_offset) >= own_end",
        "up_to_date = True",
    ),
    Bug(
        "votes-twice",
        "raft/election.py",
        """            case role if role.voted_key is not None:
                return role.voted_key.matches(request.candidate)
            case role:
                return role.leader_id == NO_NODE and up_to_date
""",
        """            case role:
                return up_to_date
""",
    ),
    Bug(
        "acknowledges-before-synced",
        "raft/log_fetcher.py",
        "is_durable = log.durable_end_offset >= log.end_offset or not self._must_be_durable",
        "is_durable = True",
    ),
    Bug(
        "commits-by-itself",
        "raft/leadership.py",
        "majority_end_offset = leader.progress.majority_end_offset()",
        "majority_end_offset = node.durable_end_offset",
    ),
]

CONTROLLER = [
    Bug(
        "answers-before-commit",
        "controller/quorum_controller.py",
        "if active.last_offset <= self._published_offset:",
        "if True:",
    ),
    Bug(
        "stale-alter-partition",
        "controller/alter_partition.py",
        "    _require_current(leader, requested, partition)\n",
        "",
    ),
    Bug(
        "any-life-of-a-broker",
        "controller/alter_partition.py",
        "member.broker_epoch not in (-1, broker.epoch)",
        "False",
    ),
    Bug(
        "unclean-elections",
        "controller/partition_change.py",
        "    if rules.election is Election.UNCLEAN:\n",
        "    if True:\n",
    ),
    Bug(
        "trusts-who-crashed",
        "controller/broker_registration.py",
        "request.previous_broker_epoch == existing.epoch",
        "True",
    ),
    Bug(
        "eligible-though-crashed",
        "controller/partition_change.py",
        "r not in isr and r != unclean_shutdown)",
        "r not in isr)",
    ),
    Bug(
        "epoch-not-bumped",
        "metadata/replay.py",
        "before.leader_epoch + begins_epoch,",
        "before.leader_epoch,",
    ),
]

REPLICATION = [
    Bug(
        "watermark-ignores-a-replica",
        "replication/leadership.py",
        "if follower.end_offset < end_offset and (\n",
        "if follower.end_offset < end_offset and follower.broker_id < max(self.followers) and (\n",
    ),
    Bug(
        "in-sync-too-early",
        "replication/leadership.py",
        """            or follower.end_offset < high_watermark
            or follower.end_offset < self.epoch_start
""",
        "",
    ),
    Bug(
        "leaves-before-the-controller-says",
        "replication/leadership.py",
        "isr if joining is None else (*isr, joining)",
        "[b for b, _ in self.proposal.isr] if self.proposal is not None else isr",
    ),
    Bug(
        "counts-what-was-sent",
        "replication/leading.py",
        "                records = self._read(offset, max_bytes, log.end_offset, at_least_one)\n",
        """                records = self._read(offset, max_bytes, log.end_offset, at_least_one)
                if records is not None:
                    self._note(
                        follower, records.next_offset, start_offset, replica_epoch, now_ms
                    )
""",
    ),
    Bug(
        "truncates-to-the-watermark",
        "replication/replica_fetcher/appender.py",
        "truncation_offset(log, leader_epoch, leader_end_offset))",
        "min(log.end_offset, followed.partition.high_watermark))",
    ),
    Bug(
        "does-not-truncate",
        "replication/leading.py",
        "            diverging = self._divergence(offset, last_fetched_epoch)\n",
        "            diverging = None\n",
    ),
    Bug(
        "any-leader-epoch",
        "replication/leading.py",
        "if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):",
        "if not self.is_leader:",
    ),
    Bug(
        "acknowledges-at-once",
        "replication/partition.py",
        "if acks == ALL_IN_SYNC and self.high_watermark < next_offset:",
        "if False:",
    ),
    Bug(
        "readers-see-everything",
        "replication/partition.py",
        "upto = stable if isolation else high_watermark",
        "upto = log.end_offset",
    ),
    Bug(
        "end-told-too-early",
        "server/api/list_offsets.py",
        "is_unsure = partition.is_catching_up",
        "is_unsure = False",
    ),
    Bug(
        "followers-forget-producers",
        "log/log.py",
        "        if not header.attributes & CONTROL_BIT:\n            self.producers.appended",
        "        if not header.attributes & CONTROL_BIT and header.leader_epoch == 0:\n"
        "            self.producers.appended",
    ),
]


if __name__ == "__main__":
    sys.exit(main([*QUORUM, *CONTROLLER, *REPLICATION], "tests.simulation.cluster"))
