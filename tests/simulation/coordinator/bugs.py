"""Bugs in the coordinators that the checkers must find."""

from tests.simulation.planted import Bug

BUGS = [
    Bug(
        "assign-before-revoked",
        "coordinator/groups/consumer/reconciliation.py",
        "if partition not in own and is_owned(topic_id, partition):",
        "if False:",
    ),
    Bug(
        "rebalance-without-joins",
        "coordinator/groups/classic/rebalance.py",
        """    if group.has_all_joined:
        return complete(group, groups, context)
    _await_joins(group, groups)
    return []
""",
        "    return complete(group, groups, context)\n",
    ),
    Bug(
        "any-generation-commits",
        "coordinator/groups/classic/group.py",
        """            self.check_member(member_id, instance_id)
            self.check_generation(epoch)
        elif""",
        """            self.check_member(member_id, instance_id)
        elif""",
    ),
    Bug(
        "respond-before-commit",
        "coordinator/shard.py",
        """        else:
            self._log.when_committed(end_offset, self._write_timeout_ms, on_committed)
        return response""",
        """        else:
            on_committed(None)
        return response""",
    ),
    Bug(
        "forgets-plain-commits",
        "coordinator/groups/offsets/plain_commit.py",
        """        for name, topic_id, entries in self._topics:
            state.offsets""",
        """        for name, topic_id, entries in self._topics[1:]:
            state.offsets""",
    ),
    Bug(
        "abort-keeps-offsets",
        "coordinator/groups/offsets/store.py",
        "offset = by_producer[producer_id] if committed else None",
        "offset = by_producer[producer_id]",
    ),
    Bug(
        "zombies-end-transactions",
        "coordinator/transactions/end_txn.py",
        """    if request.producer_epoch != current.producer_epoch:
        raise fenced(current, request.producer_id, request.producer_epoch)
""",
        "",
    ),
    Bug(
        "zombies-add-partitions",
        "coordinator/transactions/add_partitions.py",
        "if current.producer_epoch != request.producer_epoch:",
        "if False:",
    ),
    Bug(
        "no-verification",
        "log/producers/producer_state.py",
        "if must_verify and header.is_transactional:",
        "if False:",
    ),
    Bug(
        "complete-before-markers",
        "coordinator/transactions/markers.py",
        "(each for each, code in codes.items() if code in DONE)",
        "(tuple(markers.remaining))",
    ),
    Bug(
        "markers-lost-by-load",
        "coordinator/transactions/state.py",
        "        return resume_markers(self)\n",
        "        return ()\n",
    ),
    Bug(
        "timeouts-lost-by-load",
        "coordinator/transactions/timeouts.py",
        "        self._schedule_abort(self._settings.broker(ABORT_INTERVAL))\n",
        "",
    ),
    Bug(
        "sessions-lost-by-load",
        "coordinator/groups/classic/replay.py",
        """    for member in group.members.values():
        groups.timers.start(rebalance.session_timer(group, member))
""",
        "",
    ),
    Bug(
        "load-skips-markers",
        "coordinator/loader.py",
        "        _replay_markers(run, state)\n",
        "",
    ),
]
