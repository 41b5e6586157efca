"""The command line with one paper more."""

from cotrail.cli.main import main
from cotrail.evaluation.experiments import registry

registry.PAPERS["made-up"] = "tests.integration.made_paper"
main()
