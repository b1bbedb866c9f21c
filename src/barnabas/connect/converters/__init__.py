"""Converters between the bytes of records and Connect's data, a batch at a time."""
