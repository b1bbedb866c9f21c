"""Connect's REST API: one module for each resource, and what they share."""
