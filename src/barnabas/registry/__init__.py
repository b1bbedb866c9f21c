"""The schema registry service, with Confluent's REST API and its `_schemas` topic."""
