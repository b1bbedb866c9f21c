"""What a node counts about itself, and the HTTP endpoint that exposes it to Prometheus."""
