"""Reports of runs, comparisons and experiments as files: tables, figures and pages.

`run_report` is a run's page, with `reported_runs`, `reported_questions` and `charts`; `comparison_page` that of a
comparison; `documents` are those of an experiment, with `figures` and `sheets`. All pages are made of templates by
`pages`.
"""
