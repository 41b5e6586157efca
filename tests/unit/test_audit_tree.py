"""The tree over a run's questions is that of RFC 6962."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from cotrail.audit.question_sequence import MerkleTree
from tests.cases import each_case

LEAVES = ["", "\0", "\x10", " !", "01", "@ABC", "PQRSTUVW", "`abcdefghijklmno"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""What Google's certificate-transparency tests its trees with: leaves, and the root over the first so many of them."""


@each_case("size", range(len(ROOTS)))
def test_the_roots_are_those_of_certificate_transparency(size: int) -> None:
    assert root(LEAVES[:size]) == ROOTS[size]


@given(st.lists(st.text("0123456789abcdef", max_size=64), max_size=70))
def test_the_root_is_as_the_rfc_defines_it(leaves: list[str]) -> None:
    assert root(leaves) == defined(leaves).hex()


def root(leaves: list[str]) -> str:
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def defined(leaves: list[str]) -> bytes:
    """MTH of section 2.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0].encode()).digest()
    split = 1
    while 2 * split < len(leaves):
        split *= 2
    return sha256(b"\x01" + defined(leaves[:split]) + defined(leaves[split:])).digest()
