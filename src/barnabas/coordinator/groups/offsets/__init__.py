"""Committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and expiration."""

from barnabas.coordinator.groups.offsets.commit import commit as commit
from barnabas.coordinator.groups.offsets.commit import may_commit as may_commit
from barnabas.coordinator.groups.offsets.commit import restart_session as restart_session
from barnabas.coordinator.groups.offsets.commit import txn_commit as txn_commit
from barnabas.coordinator.groups.offsets.delete import delete as delete
from barnabas.coordinator.groups.offsets.fetch import fetch as fetch
