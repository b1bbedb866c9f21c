"""Temporary directories are removed: by their process, or by the next one after a crash."""

import os
import subprocess
import sys
from pathlib import Path

from barnabas.spark.runtime.temporary_directory import LockedDirectory, remove_stale

CRASH = """
import os, signal, sys
from pathlib import Path
from barnabas.spark.runtime.temporary_directory import LockedDirectory
directory = LockedDirectory("test", Path(sys.argv[1]))
(directory.path / "offsets").mkdir()
if sys.argv[2] == "crash":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def end_process(folder: Path, how: str) -> None:
    subprocess.run([sys.executable, "-c", CRASH, folder, how], check=False)


def test_a_directory_is_private_and_removed(tmp_path: Path) -> None:
    directory = LockedDirectory("test", tmp_path)
    assert directory.path.stat().st_mode & 0o777 == 0o700
    (directory.path / "file").touch()
    directory.remove()
    directory.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_removed_when_its_process_ends(tmp_path: Path) -> None:
    end_process(tmp_path, "exit")
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_crashed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    end_process(tmp_path, "crash")
    (left,) = tmp_path.iterdir()
    directory = LockedDirectory("test", tmp_path)
    assert list(tmp_path.iterdir()) == [directory.path]
    assert left != directory.path
    directory.remove()


def test_directories_in_use_and_those_of_others_are_kept(tmp_path: Path) -> None:
    used = LockedDirectory("test", tmp_path)
    new = tmp_path / "barnabas-test-new"  # its process is about to lock it
    new.mkdir()
    other = tmp_path / "barnabas-other-1"
    other.mkdir()
    os.utime(other, (0, 0))
    remove_stale("test", tmp_path)
    assert {used.path, new, other} == set(tmp_path.iterdir())
    os.utime(new, (0, 0))
    remove_stale("test", tmp_path)
    assert {used.path, other} == set(tmp_path.iterdir())
    used.remove()
