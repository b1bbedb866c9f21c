"""Connect's internal topics: connectors, positions and states."""
