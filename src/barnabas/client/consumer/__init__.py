"""The consumer: fetching, positions, membership in a group, and the facades over them."""
