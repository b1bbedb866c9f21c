"""One file per API of the protocol."""
