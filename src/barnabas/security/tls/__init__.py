"""TLS of listeners: their stores, contexts and reloads, and principals of client certificates."""
