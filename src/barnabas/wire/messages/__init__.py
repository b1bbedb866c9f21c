"""Every message of the protocol, declared: one module per API, and the records of internal logs."""
