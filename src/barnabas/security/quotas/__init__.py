"""Client quotas: how much users, client ids and IP addresses may do, and when they must wait."""
