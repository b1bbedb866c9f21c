"""The record batch: read, write, validate, patch in place, compress, to and from Arrow."""
