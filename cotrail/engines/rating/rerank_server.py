"""Rerank servers, as the tables of `models.toml` describe them."""

from typing import ClassVar, Literal

from cotrail.engines.text_server import TextServer


class RerankServer(TextServer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rater behind a server.

    api: `rerank` for the `/rerank` of vLLM, llama.cpp, Jina and Cohere, `tei` for that of Hugging Face's
        text-embeddings-inference.
    raw_scores: whether TEI's scores are the model's outputs, and not probabilities.
    """

    decides: ClassVar[tuple[str, ...]] = ("api", "raw_scores")

    api: Literal["rerank", "tei"] = "rerank"
    raw_scores: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.raw_scores and self.api != "tei":
            raise ValueError('raw_scores is for api = "tei": other servers have one kind of score')

    @property
    def path(self) -> str:
        """See `TextServer`."""
        return "/rerank"
