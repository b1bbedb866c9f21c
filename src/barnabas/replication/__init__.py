"""The data plane: partitions as leader or follower, their high watermarks and reads."""
