"""Which directories in memory this process has."""

from pathlib import Path

from barnabas.spark.runtime.temporary_directory import fast_folder


def own_directories() -> set[Path]:
    """Returns the directories that this process has locked."""
    files = [file for file in Path("/proc/self/fd").iterdir() if file.exists()]
    open_files = {str(file.readlink()) for file in files}
    return {path for path in fast_folder().iterdir() if f"{path}/lock" in open_files}
