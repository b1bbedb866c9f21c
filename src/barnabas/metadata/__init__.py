"""The metadata of the cluster: its records, the image they build, and deltas of the image."""
