"""The commit log of one partition on disk: segments, indexes, producer state, recovery, retention."""
