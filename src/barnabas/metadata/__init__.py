"""What the cluster knows: metadata records, the image they build, the delta between two images."""
