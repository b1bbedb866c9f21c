"""Checkpoint files are written from threads, in turn."""

from pathlib import Path

from barnabas.log.directory.offset_checkpoints import CheckpointWriter


def test_an_older_checkpoint_never_overwrites_a_newer_one(tmp_path: Path) -> None:
    checkpointing = CheckpointWriter(str(tmp_path))
    older = checkpointing.begin({"recovery-point-offset-checkpoint": b"old"})
    newer = checkpointing.begin({"recovery-point-offset-checkpoint": b"new"})
    newer.write()
    older.write()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_bytes() == b"new"
