"""The follower's side of replication: fetch what the leaders have, and be like them."""

from barnabas.replication.replica_fetcher.manager import Fetchers
from barnabas.replication.replica_fetcher.followed_partition import Followed, Standing

__all__ = ["Fetchers", "Followed", "Standing"]
