"""What is shown of runs: lists, traces, scores, verdicts, causes, comparisons, exports and reports.

Runs: `runs`, `plans`, `scoring`, `summarizing`, `verdicts` of `judges`, `repeated_steps`, `auditing`, `exporting` in
  `export_formats`, of which `exported_traces` is one.
Questions: `questions`, `steps`, `reasoning`; asked alone: `asking`, `answering`.
What people say: `annotations`, `causes`, `cause_labels`. Chains: `recorded_chains`.
Several runs: `comparing` makes a `comparison` of `compared_questions`, shown by `comparison_tables` and
  `comparison_words`; `paired_questions`; `experiment_reports`. Pages are in `reports`.
"""
