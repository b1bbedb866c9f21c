"""Taking the addresses of a role's listeners, and knowing what to tell others of them."""

import socket
from collections.abc import Iterable

from barnabas.config import Listener
from barnabas.server.network import Network


def listen(
    network: Network, listeners: Iterable[Listener], advertised: Iterable[Listener]
) -> list[Listener]:
    """The advertised listeners, with what binding decided: this host's name, a free port."""
    bound = {each.name: network.listen(each.name, each.host, each.port).port for each in listeners}
    return [
        each._replace(host=each.host or socket.getfqdn(), port=each.port or bound[each.name])
        for each in advertised
    ]
