"""A log directory, an entry of `log.dirs`, and the files that hold for all of its logs."""
