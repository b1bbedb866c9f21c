"""The state of the producers of a log: sequences, transactions, snapshots."""
