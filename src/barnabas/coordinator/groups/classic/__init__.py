"""The classic group protocol: members agree through a leader among them.

JoinGroup gathers the members of the next generation, SyncGroup carries the leader's assignment to
all of them, Heartbeat keeps them in. A group lives in memory; its record in the log is written
for whoever loads it later.
"""
