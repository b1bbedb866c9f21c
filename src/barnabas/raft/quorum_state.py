"""The file `quorum-state`: a node's epoch and vote, as one line of JSON.

Version 1 is for quorums whose voters are in the log, version 0 for those whose voters are a
setting (`controller.quorum.voters`).
"""

import json
from pathlib import Path

from barnabas.log.checkpoint_file import replace_file
from barnabas.raft.messages import QuorumState
from barnabas.raft.roles import NO_NODE
from barnabas.raft.voters import QuorumError
from barnabas.wire.uuid import ZERO, from_text, to_text

FILE_NAME = "quorum-state"


def read_state(folder: str) -> QuorumState:
    """Returns the state that was written last; epoch 0 if there is none."""
    path = Path(folder, FILE_NAME)
    try:
        fields = json.loads(path.read_bytes())
        directory = fields.get("votedDirectoryId")
        return QuorumState(
            epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields["leaderId"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=from_text(directory) if directory else ZERO,
        )
    except FileNotFoundError:
        return QuorumState()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QuorumError(
            f"{path} is corrupt ({error}); without it this node could vote twice in one epoch. "
            "Restore the file from a copy."
        ) from None


def write_state(folder: str, state: QuorumState, static_voters: list[int] | None) -> None:
    """Replaces the file and waits until it is on disk.

    `static_voters` is None if the voters are in the log.
    """
    fields: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.epoch}
    if static_voters is not None:
        fields = {"clusterId": "", **fields, "votedId": state.voted_id}  # Kafka leaves it empty
        fields["appliedOffset"] = 0
        fields["currentVoters"] = [{"voterId": node_id} for node_id in static_voters]
        fields["data_version"] = 0
    else:
        fields["votedId"] = state.voted_id
        fields["votedDirectoryId"] = to_text(
            state.voted_directory_id if state.voted_id != NO_NODE else ZERO
        )
        fields["data_version"] = 1
    replace_file(str(Path(folder, FILE_NAME)), json.dumps(fields, separators=(",", ":")).encode())
