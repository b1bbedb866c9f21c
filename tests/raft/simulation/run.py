"""One seed, from its first event to the reckoning."""

import traceback
from typing import NamedTuple

from tests.raft.simulation.checkers import Violation
from tests.raft.simulation.faults import Faults
from tests.raft.simulation.world import World


class Outcome(NamedTuple):
    seed: int
    failure: str | None  # the invariant that was violated, and how
    where: str
    trace: list[str]
    committed: int
    epochs: int


def run(seed: int) -> Outcome:
    world = World(seed)
    failure, where = None, ""
    try:
        _live(world)
    except Exception as error:
        failure = str(error) if isinstance(error, Violation) else repr(error)
        where = traceback.format_exc()
    checkers = world.checkers
    committed, epochs = len(checkers.committed_records), len(checkers.leaders)
    return Outcome(seed, failure, where, list(world.trace), committed, epochs)


def _live(world: World) -> None:
    for node in world.nodes:
        world.clock.later(world.random.randint(0, 200), node.start)
    world.clock.later(300, Faults(world).strike)
    world.clock.later(300, world.propose)
    world.clock.run_until(world.trouble_ms)
    _calm(world)
    leader = world.await_agreement()
    if world.random.random() < 0.3:
        world.check_peace(leader)
        world.await_agreement()


def _calm(world: World) -> None:
    world.tell("calm")
    world.is_troubled = False
    network = world.network
    network.cut.clear()
    network.loss = network.doubling = 0.0
    network.max_delay_ms = 5
    for node in world.nodes:
        node.disk.max_flush_ms = 4
        node.resume()
        if not node.is_up:
            node.start()
