"""Authorization: ACLs, and the decisions that are derived from them."""
