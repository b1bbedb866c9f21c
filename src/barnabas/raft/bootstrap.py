"""The files of a newly formatted node: `bootstrap.checkpoint`, and the snapshot at offset 0.

`bootstrap.checkpoint` holds the feature levels that the first active controller writes into the
log. A node formatted with the voters of a new quorum also gets the snapshot
`00000000000000000000-0000000000.checkpoint` beside its log, which names them.
"""

from collections.abc import Sequence
from pathlib import Path

from barnabas.log.directory.partition_metadata import write as write_partition_metadata
from barnabas.raft.metadata_log import FOLDER
from barnabas.raft.snapshots import SnapshotId, SnapshotWriter, read_snapshot
from barnabas.raft.voters import VoterSet
from barnabas.wire.uuid import METADATA_TOPIC_ID

BOOTSTRAP_FILE = "bootstrap.checkpoint"
_SNAPSHOT_AT_START = SnapshotId(0, 0)


def format_metadata(
    directory: str, bootstrap_frames: Sequence[bytes], voters: VoterSet | None, now_ms: int
) -> None:
    """Prepares a formatted log directory for the metadata log."""
    bootstrap = SnapshotWriter(
        directory,
        _SNAPSHOT_AT_START,
        None,
        last_timestamp_ms=0,
        now_ms=now_ms,
        file_name=BOOTSTRAP_FILE,
    )
    bootstrap.append(bootstrap_frames)
    bootstrap.finish()
    Path(directory, BOOTSTRAP_FILE).chmod(0o644)
    if voters is None:
        return
    folder = Path(directory, FOLDER)
    folder.mkdir(exist_ok=True)
    write_partition_metadata(str(folder), METADATA_TOPIC_ID)
    SnapshotWriter(
        str(folder),
        _SNAPSHOT_AT_START,
        voters,
        last_timestamp_ms=now_ms,
        now_ms=now_ms,
    ).finish()


def read_bootstrap(directory: str) -> list[bytes]:
    """Returns the encoded records that a new cluster begins with; none if there is no file."""
    path = Path(directory, BOOTSTRAP_FILE)
    if not path.exists():
        return []
    return [
        record.value
        for records in read_snapshot(path)
        for record in records
        if record.key is None and record.value is not None
    ]
