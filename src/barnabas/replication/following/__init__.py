"""The follower's side of replication: fetch what the leaders have, and be like them."""

from barnabas.replication.following.fetchers import Fetchers
from barnabas.replication.following.followed import Followed, Standing

__all__ = ["Fetchers", "Followed", "Standing"]
