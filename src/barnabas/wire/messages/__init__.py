"""The messages of the protocol: one module per subject, and the records of internal logs.

Structs have Kafka's names. Where one module declares several with the same name, they get a prefix
of the API or of the request or response they belong to.
"""
