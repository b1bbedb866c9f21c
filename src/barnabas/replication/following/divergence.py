"""Where a follower cuts its log when the leader says that theirs have parted (KIP-279, KIP-595)."""

from barnabas.log import Log


def truncation_offset(log: Log, leader_epoch: int, leader_end_offset: int) -> int:
    """The end of what may be common, by the leader's largest epoch not above ours, and its end.

    An epoch that this log does not have cannot end the common part: then it ends with our
    largest epoch before that one, and the next fetch asks about that.
    """
    epoch, end_offset = log.epoch_end(leader_epoch)
    if epoch < 0:
        return min(leader_end_offset, log.end_offset)
    if epoch != leader_epoch:
        return min(end_offset, log.end_offset)
    return min(end_offset, leader_end_offset, log.end_offset)
