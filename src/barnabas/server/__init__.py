"""Sockets, the request pipeline and purgatory."""
