"""URLs of databases that cotrail works with."""

from urllib.parse import parse_qsl

from pydantic import SecretStr

from cotrail.common.server_addresses import read_address

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")


def check_database(url: SecretStr) -> SecretStr:
    """Refuse what isn't PostgreSQL's address, and parameters that its client library doesn't know."""
    query = read_address(url.get_secret_value(), SCHEMES).query
    if query:
        _check_parameters(query)
    return url


def _check_parameters(query: str) -> None:
    from psycopg.pq import Conninfo  # imported on use: it takes long, and few addresses have parameters

    parameters = {option.keyword.decode() for option in Conninfo.get_defaults()}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in parameters:
            raise ValueError("PostgreSQL's client library doesn't know one of its parameters, behind the question mark")
        if name == "port" and not all(port.isdecimal() for port in value.split(",")):
            raise ValueError("its parameter port is no number")
