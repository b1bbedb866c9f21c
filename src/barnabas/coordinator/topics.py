"""The internal topics that coordinators keep their state in, by Kafka's names."""

from typing import Final

GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_GROUPS_TOPIC: Final = "__share_group_state"

INTERNAL_TOPICS: Final = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC})
