"""Who a client is, what it may do, and how much: authentication, authorization, quotas."""
