"""The server's side of SASL: who a client is.

Each mechanism is a `ServerExchange`, which is given the client's messages and returns the server's.
`SaslServer` has the mechanisms of one listener.
"""
