"""The schema registry, with Confluent's REST API, and what speaks to one."""
