"""Builds a running process out of the rooms, by its roles."""
