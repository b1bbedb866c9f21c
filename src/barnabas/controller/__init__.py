"""The control plane: decides on a command, and answers with metadata records."""
