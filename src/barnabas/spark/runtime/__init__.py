"""Supervises streaming queries of services: Connect, and later SQL and mirrors."""
