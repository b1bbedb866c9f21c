"""Client telemetry (KIP-714): clients push their own metrics, and /metrics shows them."""
