"""Bugs in the quorum, the controller and replication that the checkers must find."""

from tests.simulation.planted import Bug

QUORUM = [
    Bug(
        "votes-without-log-check",
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
        "fetches-before-synced",
        "raft/log_fetcher.py",
        "is_durable = log.durable_end_offset >= log.end_offset or not self._must_be_durable",
        "is_durable = True",
    ),
    Bug(
        "commits-without-majority",
        "raft/leadership.py",
        "majority_end_offset = leader.progress.majority_end_offset()",
        "majority_end_offset = node.durable_end_offset",
    ),
]

CONTROLLER = [
    Bug(
        "responds-before-commit",
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
        "any-broker-epoch",
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
        "trusts-crashed-brokers",
        "controller/broker_registration.py",
        "request.previous_broker_epoch == existing.epoch",
        "True",
    ),
    Bug(
        "crashed-stays-in-elr",
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
        "replication/leader_state.py",
        "if follower.log_end_offset < end_offset and (\n",
        "if follower.log_end_offset < end_offset and follower.broker_id < max(self.followers) and ("
        "\n",
    ),
    Bug(
        "in-sync-too-early",
        "replication/leader_state.py",
        """            and follower.log_end_offset >= high_watermark
            and follower.log_end_offset >= self.epoch_start_offset
""",
        "",
    ),
    Bug(
        "shrinks-isr-locally",
        "replication/leader_state.py",
        "isr if joining is None else (*isr, joining)",
        "[b for b, _ in self.pending_isr_change.isr]\n"
        "            if self.pending_isr_change is not None\n"
        "            else isr",
    ),
    Bug(
        "assumes-sent-is-fetched",
        "replication/partition.py",
        "                records = self._read("
        "offset, max_bytes, log.log_end_offset, at_least_one, pread)\n",
        """                records = self._read(
                    offset, max_bytes, log.log_end_offset, at_least_one, pread
                )
                if records is not None:
                    leader_state.on_fetch(
                        follower, records.next_offset, log_start_offset, replica_epoch, now_ms
                    )
""",
    ),
    Bug(
        "keeps-progress-of-former-epochs",
        "replication/partition.py",
        "if leader_state is None or is_new:",
        "if leader_state is None:",
    ),
    Bug(
        "truncates-to-the-watermark",
        "replication/replica_fetcher/appender.py",
        "truncation_offset(log, leader_epoch, leader_end_offset))",
        "min(log.log_end_offset, followed.partition.high_watermark))",
    ),
    Bug(
        "does-not-truncate",
        "replication/partition.py",
        "        if last_fetched_epoch >= 0:\n"
        "            diverging = self._diverging_epoch(offset, last_fetched_epoch)\n"
        "        if not log",
        "        if not log",
    ),
    Bug(
        "any-leader-epoch",
        "replication/partition.py",
        "if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):\n"
        "            raise",
        "if not self.is_leader:\n            raise",
    ),
    Bug(
        "acks-all-as-acks-1",
        "replication/partition.py",
        "if acks == ACKS_ALL and self.high_watermark < next_offset:",
        "if False:",
    ),
    Bug(
        "readers-see-uncommitted",
        "replication/partition.py",
        "upto = stable if isolation else high_watermark",
        "upto = log.log_end_offset",
    ),
    Bug(
        "stale-latest-offset",
        "server/api/list_offsets.py",
        "is_uncertain = partition.has_stale_high_watermark",
        "is_uncertain = False",
    ),
    Bug(
        "no-producer-state-on-followers",
        "log/log.py",
        "        if not batch.attributes & CONTROL_BIT:\n"
        "            self.producers.on_batch_appended",
        "        is_from_leader = getattr(batch, 'leader_epoch', 0) > 0\n"
        "        if not batch.attributes & CONTROL_BIT and not is_from_leader:\n"
        "            self.producers.on_batch_appended",
    ),
]

LANES = [
    Bug(
        "lane-acks-all-as-acks-1",
        "server/lanes/_produce.py",
        "if self.acks != _NO_ACKS and not is_committed:",
        "if False:",
    ),
    Bug(
        "lane-readers-see-uncommitted",
        "server/lanes/_fetch_reads.py",
        "end: Long = read.stable_offset if request.isolation else read.high_watermark",
        "end: Long = end_offset",
    ),
    Bug(
        "lane-does-not-truncate",
        "server/lanes/_fetch_reads.py",
        "if read.last_fetched_epoch >= 0 and self.is_diverging(read, log):",
        "if False:",
    ),
    Bug(
        "lane-wakes-without-reading",
        "server/lanes/_fetch.py",
        "self.read_again([key] if session is None else session.dirty.take_all())",
        "[key] if session is None else session.dirty.take_all()",
    ),
]

COMPACTION = [
    Bug(
        "keeps-older-records",
        "log/cleaner/cleaning.py",
        "if source.next_offset > first_dirty_offset]",
        "if source.base_offset > first_dirty_offset]",
    ),
    Bug(
        "drops-last-records",
        "log/cleaner/map_builder.py",
        "            header.base_offset,\n",
        "            header.base_offset + 1,\n",
    ),
    Bug(
        "cleans-uncommitted-records",
        "replication/compacted_partitions.py",
        "return CompactedLog(log, partition.last_stable_offset)",
        "return CompactedLog(log, log.last_stable_offset(log.log_end_offset))",
    ),
    Bug(
        "cleans-open-transactions",
        "log/cleaner/cleanable.py",
        "end_offset = min(last_stable_offset, log.segments.active.base_offset)",
        "end_offset = log.segments.active.base_offset",
    ),
    Bug(
        "drops-tombstones-at-once",
        "log/cleaner/cleaning.py",
        "delete_retention_ms=self._config.delete_retention_ms,",
        "delete_retention_ms=0,",
    ),
    Bug(
        "drops-last-batches-of-producers",
        "log/cleaner/cleaning.py",
        "[producer.last_offset for producer in producers if producer.batches],",
        "[],",
    ),
    Bug(
        "keeps-values-of-aborted-transactions",
        "log/cleaner/map_builder.py",
        "if is_aborted or header.last_offset",
        "if header.last_offset",
    ),
    Bug(
        "keeps-aborted-records",
        "log/cleaner/transactions.py",
        """        if header.producer_id in self._ongoing_aborted:
            self._observed.add(header.producer_id)
            return True
""",
        "",
    ),
    Bug(
        "checkpoints-before-the-swap",
        "log/cleaner/log_cleaner.py",
        "            return Cleaning(log, cleanable,",
        "            self._checkpoint(log, cleanable.end_offset)\n"
        "            return Cleaning(log, cleanable,",
    ),
    Bug(
        "removes-old-segments-first",
        "log/maintenance.py",
        """
            for path in reversed(paths):
                os.rename(path + CLEANED, path + SWAP)
            renamed =""",
        """
            for segment in replaced:
                mark_deleted(segment, SEGMENT_SUFFIXES)
            for path in reversed(paths):
                os.rename(path + CLEANED, path + SWAP)
            renamed =""",
    ),
    Bug(
        "recovery-removes-swaps",
        "log/recovery.py",
        "if unfinished_from is not None and _offset(name) >= unfinished_from:",
        "if True:",
    ),
    Bug(
        "does-not-sync-cleaned-segments",
        "log/cleaner/segment_writer.py",
        "        os.fsync(self._fd)\n",
        "",
    ),
    Bug(
        "transactions-are-aborted-twice",
        "log/cleaner/cleaning.py",
        "transaction for transaction in aborted if transaction.last_offset >= first_offset",
        "aborted",
    ),
]

BUGS = [*QUORUM, *CONTROLLER, *REPLICATION, *LANES, *COMPACTION]
