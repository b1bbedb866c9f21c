"""Committed offsets: how far groups have read."""

from barnabas.coordinator.groups.offsets.commit import commit as commit
from barnabas.coordinator.groups.offsets.commit import txn_commit as txn_commit
from barnabas.coordinator.groups.offsets.delete import delete as delete
from barnabas.coordinator.groups.offsets.fetch import fetch as fetch
