"""Whoever is cut off or frozen holds nobody else up, and comes back by itself."""

import signal
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from benchmarks.contenders.cotrail import submission
from cotrail.core.questions import Question
from cotrail.models.commands.control import cancel
from cotrail.models.commands.submission import submit
from cotrail.models.schema.database import connect
from cotrail.systems.registry import find_system
from tests.conftest import Eventually
from tests.faults.networked import HOSTS, SERVERS, Host, Network, allowed, network
from tests.faults.stacked import finished_steps

pytestmark = [
    pytest.mark.skipif(not allowed(), reason="network namespaces can't be made by this account"),
    pytest.mark.timeout(600),
]

RUN = "partitioned"
PROGRESS = 600
"""How many steps have to be finished for it to count as progress: more than the questions have that were begun."""

SECONDS = 30
"""How long it may take until a step is finished, wherever somebody healthy is left."""

Cut = Callable[[Network], None]


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with network() as own:
        yield own


@pytest.fixture(scope="module")
def engine(net: Network) -> Iterator[Engine]:
    engine = connect(net.settings.database)
    submit(
        engine,
        replace(submission(), id=RUN),
        [Question(id=f"q{n}", text=f"Who is {n}?") for n in range(20_000)],
        find_system,
    )
    yield engine
    cancel(engine, RUN)
    engine.dispose()


@pytest.fixture
def goes_on(engine: Engine, eventually: Eventually) -> Callable[[str], None]:
    def progress(what: str) -> None:
        goal = finished_steps(engine, RUN) + PROGRESS
        while (done := finished_steps(engine, RUN)) < goal:
            eventually(lambda least=done: finished_steps(engine, RUN) > least, what, SECONDS)

    return progress


@pytest.fixture(autouse=True)
def whole(net: Network) -> Iterator[None]:
    """The network is whole afterwards, and no process ended."""
    yield
    net.mend()
    for host in net.hosts.values():
        assert host.process is not None
        host.signal(signal.SIGCONT)
        assert host.process.poll() is None, net.log(host.name)


def leader(net: Network, eventually: Eventually) -> Host:
    eventually(net.leader, "somebody leads", SECONDS)
    found = net.leader()
    assert found is not None
    return found


@pytest.mark.parametrize(
    "lost", ["to it", *(pytest.param(lost, marks=pytest.mark.slow(group=5)) for lost in ("to and from it", "from it"))]
)
def test_another_leads_where_the_leader_is_cut_off_from_the_database(
    net: Network, goes_on: Callable[[str], None], eventually: Eventually, lost: str
) -> None:
    goes_on("work begins")
    cut = leader(net, eventually)
    cut.cut("postgres", there="to" in lost, back="from" in lost)
    eventually(lambda: net.leader() not in (cut, None), "another one leads", SECONDS)
    goes_on("work goes on without the leader")
    net.mend()
    before = net.log(cut.name).count("sent ")
    other = leader(net, eventually)
    other.signal(signal.SIGSTOP)
    eventually(lambda: net.leader() is cut, "the one that was cut off leads again, as the other one is frozen", SECONDS)
    goes_on("work goes on with the one that was cut off")
    assert net.log(cut.name).count("sent ") > before


def test_another_leads_where_the_leader_is_cut_off_from_redis(
    net: Network, goes_on: Callable[[str], None], eventually: Eventually
) -> None:
    goes_on("work begins")
    cut = leader(net, eventually)
    cut.cut("redis")
    eventually(lambda: net.leader() not in (cut, None), "another one leads", SECONDS)
    goes_on("work goes on without the leader")


@pytest.mark.parametrize("server", ["postgres", pytest.param("redis", marks=pytest.mark.slow(group=5))])
def test_a_worker_that_is_cut_off_keeps_no_other_from_its_work(
    net: Network, goes_on: Callable[[str], None], server: str
) -> None:
    goes_on("work begins")
    net.hosts["near"].cut(server)
    goes_on("the other worker goes on")
    net.hosts["near"].mend()
    net.hosts["far"].signal(signal.SIGSTOP)
    goes_on("the one that was cut off works again")


@pytest.mark.slow(group=5)
@pytest.mark.parametrize("server", SERVERS)
def test_all_go_on_after_a_server_could_not_be_reached_by_anybody(
    net: Network, goes_on: Callable[[str], None], engine: Engine, eventually: Eventually, server: str
) -> None:
    goes_on("work begins")
    for host in net.hosts.values():
        host.cut(server)
    if server == "postgres":
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE client_addr IS NOT NULL"
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as own:
            eventually(lambda: own.exec_driver_sql(sessions).scalar() == 0, "PostgreSQL ends all sessions", 60)
    else:
        eventually(lambda: all("broker" in net.log(name) for name in HOSTS), "all notice that Redis is away", 60)
    net.mend()
    goes_on("all go on")
