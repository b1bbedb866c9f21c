"""Sockets, the request pipeline, purgatory, and the APIs of brokers and controllers."""
