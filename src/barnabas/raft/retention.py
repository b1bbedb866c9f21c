"""Which snapshots of the metadata log may go."""

from collections.abc import Mapping

from barnabas.raft.snapshots import SnapshotId


def expendable(
    sizes: Mapping[SnapshotId, int],
    ages_ms: Mapping[SnapshotId, int],
    log_bytes: int,
    retention_bytes: int,
    retention_ms: int,
) -> list[SnapshotId]:
    """The oldest snapshots that are too old or too much; never the newest.

    A retention below 0 sets no limit.
    """
    total_bytes = log_bytes + sum(sizes.values())
    gone = []
    for snapshot in sorted(sizes)[:-1]:
        too_much = 0 <= retention_bytes < total_bytes
        too_old = 0 <= retention_ms < ages_ms[snapshot]
        if not too_much and not too_old:
            break
        total_bytes -= sizes[snapshot]
        gone.append(snapshot)
    return gone
