"""Connect's data model on Arrow."""
