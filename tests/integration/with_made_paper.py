"""The command line with one paper more."""

from cotrail.cli.main import main
from cotrail.evaluation.experiments import registry
from tests.integration import made_paper

registry.PAPERS = (*registry.PAPERS, made_paper.PAPER)
main()
