"""A run from its seed: faults for some time, then none, then the final checks."""

from collections import Counter

from tests.simulation.raft.faults import Faults
from tests.simulation.raft.memory_log import FAST_FLUSH_MS
from tests.simulation.raft.world import FAST_MS, QuorumWorld
from tests.simulation.world.process import ProcessLoop
from tests.simulation.world.run import Outcome

FIRST_FAULT_S = 0.3


def run(seed: int, *, is_traced: bool = False) -> Outcome:
    loop = ProcessLoop()
    world = QuorumWorld(seed, loop)
    try:
        _run(world)
    except Exception as failure:
        world.events.fail(failure)
    finally:
        loop.close()
    checkers = world.checkers
    work = {"leaders": len(checkers.leaders), "records committed": len(checkers.committed_records)}
    return Outcome.of(seed, world.events, loop.elapsed_ms, Counter(work), is_traced=is_traced)


def _run(world: QuorumWorld) -> None:
    for node in world.nodes:
        world.loop.call_later(world.random.randint(0, 200) / 1000, node.start)
    world.loop.call_later(FIRST_FAULT_S, Faults(world).inject)
    world.loop.call_later(FIRST_FAULT_S, world.propose)
    world.run_for(world.fault_ms)
    _end_faults(world)
    leader = world.await_agreement()
    if world.random.random() < 0.3:
        world.check_stable_leader(leader)
        world.await_agreement()


def _end_faults(world: QuorumWorld) -> None:
    world.note("all faults end")
    world.has_faults = False
    network = world.network
    network.heal_all()
    network.loss = network.duplication = 0.0
    network.latency.fast_ms = FAST_MS
    for node in world.nodes:
        node.disk.flush_latency.fast_ms = FAST_FLUSH_MS
        node.resume()
        if not node.is_up:
            node.start()
