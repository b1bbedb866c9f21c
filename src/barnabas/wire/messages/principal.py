"""Who sent a request, as a broker tells the controller inside an Envelope."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: string = field()
    name: string = field()
    token_authenticated: bool = field()
