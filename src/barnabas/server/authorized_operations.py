"""What clients are told that they may do with a topic, a group or the cluster.

Bit n stands for the AclOperation with code n; without an authorizer everyone may do all of them.
"""

TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
