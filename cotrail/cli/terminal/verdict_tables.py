"""Tables of scores, of repeats, and of judges' verdicts and their calibration."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from cotrail.cli.terminal.output import EMPTY_CELL, INTERVAL, Cell, Column, grid, heading, print_rows, titled
from cotrail.cli.terminal.run_text import shown_state
from cotrail.common.humanize import count, number, percent, percent_range
from cotrail.common.printable_text import one_line
from cotrail.core.money import spent_line
from cotrail.services.results import verdicts as operations
from cotrail.services.results.judges import Calibration, RunCalibration
from cotrail.services.results.scoring import RepeatedScores, RunScores, metric_rows, shown_bounds, shown_mean


def print_judges(screen: Console, judges: Sequence[operations.JudgeVerdicts]) -> None:
    """Prints a line for each judge: its verdicts with their mean."""
    counts = ("judged", "unanswered", "without verdict")
    columns = titled(
        *("judge", "run", "state", "verdicts", "mean", INTERVAL, *counts),
        right=("mean", *counts),
        whole=("run", INTERVAL),
        bold=("mean",),
    )
    print_rows(screen, columns, [_judge_row(judge) for judge in judges])
    for judge in judges:
        for remark in remarks(judge):
            screen.print(f"{judge.label}: {remark}", soft_wrap=True)


def print_own_verdicts(screen: Console, judge: operations.JudgeVerdicts) -> None:
    """Prints what a judge's run says: the share of each verdict."""
    columns = _measured("verdict", "share")
    rows: list[list[Cell]] = [[verdict, *share_cells(share)] for verdict, share in judge.tally.verdicts.items()]
    over = f"score over {count(judge.tally.judged, 'answer')} with a verdict"
    rows.append(["mean", percent(judge.tally.mean), shown_interval(judge.tally.interval), over])
    print_rows(screen, columns, rows)
    for remark in remarks(judge):
        screen.print(remark, soft_wrap=True)


def remarks(judge: operations.JudgeVerdicts) -> Iterator[str]:
    """What else there is to say of a judge."""
    if judge.against:
        yield f"wins are over the answers of {judge.against}"
    if (orders := judge.consistency) and orders.of:
        between = shown_interval(orders.interval)
        yield f"both orders agree on {orders.hits:,} of {orders.of:,} ({percent(orders.value)}, {between})"
    if claims := judge.claims:
        yield (
            f"{count(claims.claims, 'claim')}: {claims.supported:,} supported by a paragraph that is cited, "
            f"{claims.contradicted:,} contradicted, {claims.unsupported:,} neither; a paragraph is cited for "
            f"{claims.cited:,}"
        )
    tally = judge.tally
    if tally.without and tally.least is not None and tally.most is not None:
        missing, bounds = count(tally.without, "question"), percent_range(tally.least, tally.most)
        yield f"{missing} without a verdict: from all wrong to all right the mean is {bounds}"
    if judge.failed:
        lost = count(judge.failed, "verdict")
        yield f"{lost} couldn't be read or got: `cotrail retry {judge.run} --failed` asks again"
    yield _cost(judge)


def print_agreement(screen: Console, found: operations.Agreement) -> None:
    """Prints how far judges agree."""
    screen.print(heading(f"Agreement of {' and '.join(found.judges)}"))
    columns = titled("judges", "questions", "the same", INTERVAL, right=("questions", "the same"), whole=(INTERVAL,))
    columns += _measured("kappa")
    rows: list[list[Cell]] = []
    for pair in found.pairs:
        kappa = pair.kappa
        bounds = "" if kappa.low is None else f"{kappa.low:.3f} to {kappa.high:.3f}"
        same = [f"{pair.same.of:,}", percent(pair.same.value), shown_interval(pair.same.interval)]
        rows.append([f"{pair.first} and {pair.second}", *same, number(kappa.value), bounds, kappa.note])
    print_rows(screen, columns, rows)
    reason = f" ({found.note})" if found.note else ""
    compared = count(found.questions, "question")
    screen.print(
        f"Krippendorff's alpha {number(found.alpha)}{reason} over {compared} with two or more verdicts; on"
        f" {found.unanimous:,} of them all agree",
        soft_wrap=True,
    )


def print_kinds(screen: Console, judges: Sequence[operations.JudgeVerdicts]) -> None:
    """Prints the means of judges by kind of question."""
    for sort in dict.fromkeys(sort for judge in judges for sort, parts in judge.kinds.items() if len(parts) > 1):
        columns = titled(sort, *(judge.label for judge in judges))
        rows = [
            [kind, *(_kind_cell(judge, sort, kind) for judge in judges)]
            for kind in dict.fromkeys(kind for judge in judges for kind in judge.kinds.get(sort, {}))
        ]
        screen.print()
        print_rows(screen, columns, rows)


def print_questions(screen: Console, found: operations.RunVerdicts) -> None:
    """Prints the verdicts on each question."""
    columns = [Column(title="question", whole=True), *(Column(title=judge.label) for judge in found.judges), Column()]
    print_rows(screen, columns, [_question_row(found, each) for each in found.per_question])


def print_verdicts(screen: Console, verdicts: Sequence[operations.Verdict]) -> None:
    """Prints what judges say of one question, with their reasons."""
    table = grid("dim", "")
    for verdict in verdicts:
        table.add_row(verdict.judge, verdict_lines(verdict))
    if verdicts:
        screen.print()
        screen.print(heading("Judges"))
        screen.print(table)


def verdict_lines(verdict: operations.Verdict) -> Text:
    """A verdict with its reasons, and its claims."""
    text = Text(one_line(operations.verdict_words(verdict)))
    if said := verdict.judgement:
        if said.extracted:
            text.append(f"\nread as: {one_line(said.extracted)}", style="dim")
        if said.reasoning:
            text.append(f"\n{one_line(said.reasoning)}", style="dim")
        for claim in said.claims:
            cited = f" [{', '.join(map(str, claim.cited))}]" if claim.cited else ""
            text.append(f"\n{claim.verdict}{cited}: {one_line(claim.claim)}", style="dim")
    return text


def shown_interval(interval: operations.ConfidenceInterval | None) -> str:
    """An interval of shares, in percent; empty where there is none."""
    return "" if interval is None else percent_range(interval.low, interval.high)


def _measured(*titles: str) -> list[Column]:
    """Columns of which the last is a value, with its interval and a remark."""
    return [*titled(*titles, INTERVAL, right=titles[-1:], whole=(INTERVAL,), bold=titles[-1:]), Column(style="dim")]


def _judge_row(judge: operations.JudgeVerdicts) -> list[Cell]:
    tally = judge.tally
    verdicts = ", ".join(f"{verdict} {share.hits:,}" for verdict, share in tally.verdicts.items())
    counts = [f"{value:,}" for value in (tally.judged, tally.unanswered, tally.without)]
    mean = [percent(tally.mean), shown_interval(tally.interval)]
    return [judge.label, judge.name or judge.run, shown_state(judge.state), verdicts, *mean, *counts]


def _cost(judge: operations.JudgeVerdicts) -> str:
    tokens = f"{judge.prompt_tokens:,} tokens read, {judge.generated_tokens:,} written"
    spent = spent_line(judge.spent) if judge.spent else ""
    return f"{tokens}. {spent}" if spent else tokens


def _kind_cell(judge: operations.JudgeVerdicts, sort: str, kind: str) -> str:
    tally = judge.kinds.get(sort, {}).get(kind)
    if tally is None or tally.mean is None:
        return EMPTY_CELL
    return f"{percent(tally.mean)} of {tally.questions:,} {shown_interval(tally.interval)}".rstrip()


def _question_row(found: operations.RunVerdicts, question: operations.QuestionVerdicts) -> list[Cell]:
    said = {verdict.judge: operations.verdict_words(verdict) for verdict in question.verdicts}
    remark = "" if question.answered else "never answered"
    return [question.question, *(said.get(judge.label, EMPTY_CELL) for judge in found.judges), remark]


def share_cells(share: operations.Share) -> list[Cell]:
    """A share, its interval, and what it is of."""
    return [percent(share.value), shown_interval(share.interval), f"{share.hits:,} of {share.of:,}"]


def print_calibration(screen: Console, found: RunCalibration) -> None:
    """Prints each judge compared with people's labels."""
    screen.print(f"{found.run}: {found.labelled:,} of {count(found.questions, 'question')} labelled in {found.labels}")
    for judge in found.judges:
        screen.print()
        screen.print(heading(judge.label), f"({judge.run})")
        _print_calibrated(screen, judge.calibration)


def _print_calibrated(screen: Console, found: Calibration) -> None:
    without = found.labelled - found.compared
    screen.print(
        f"{count(found.compared, 'question')} with label and verdict, {without:,} with a label alone, "
        f"{found.unlabelled:,} with a verdict alone"
    )
    shares = {
        "same as the label": found.agreement,
        "accuracy": found.accuracy,
        "precision of right": found.precision,
        "recall of right": found.recall,
    }
    rows: list[list[Cell]] = [[name, *share_cells(share)] for name, share in shares.items()]
    rows.append(["F1 of right", percent(found.f1), "", ""])
    kappa = found.kappa
    bounds = "" if kappa.low is None else f"{kappa.low:.3f} to {kappa.high:.3f}"
    rows.append(["Cohen's kappa", number(kappa.value), bounds, kappa.note])
    if error := found.confidence:
        bins = f"of {count(found.stated, 'stated confidence')} in {count(len(error.bins), 'bin')}"
        rows.append(["calibration error", percent(error.error), "", bins])
    if right := found.corrected:
        of = f"{percent(right.judged)} of {right.unlabelled:,} verdicts, corrected by {right.compared:,} labels"
        rows.append(["right, corrected", percent(right.value), percent_range(right.low, right.high), of])
    print_rows(screen, _measured("", "value"), rows)
    confused = [[each.label, each.verdict, f"{each.questions:,}"] for each in found.confusion]
    screen.print()
    print_rows(screen, titled("label", "verdict", "questions", right=("questions",)), confused)


def print_repeats(screen: Console, scores: RepeatedScores) -> None:
    """Prints the means over questions and repeats, and pass@k of the metrics that are 0 or 1."""
    missing = scores.times - len(scores.runs)
    removed = f", {missing} of which removed" if missing else ""
    screen.print(heading(f"Over {count(scores.times, 'repeat')}{removed}: {', '.join(scores.runs)}"), soft_wrap=True)
    _print_means(screen, scores)
    screen.print()
    _print_pass_at_k(screen, scores)
    screen.print(scores.caveat, style="dim")


def _print_means(screen: Console, scores: RepeatedScores) -> None:
    titles = ("", "mean", "error", INTERVAL, "between repeats")
    columns = titled(*titles, right=("mean", "error", "between repeats"), whole=(INTERVAL,), bold=("mean",))
    rows = [
        [
            name,
            shown_mean(name, each.mean),
            shown_mean(name, each.standard_error),
            shown_bounds(name, each.interval),
            shown_mean(name, each.deviation),
        ]
        for name, each in scores.metrics.items()
        if each
    ]
    print_rows(screen, columns, rows)


def _print_pass_at_k(screen: Console, scores: RepeatedScores) -> None:
    by_metric = {name: each.pass_at for name, each in scores.metrics.items() if each and each.pass_at}
    columns = titled("", *by_metric)
    rows = [
        [
            f"pass@{column[0].k}",
            *(
                f"{shown_mean(name, each.mean)} ({shown_bounds(name, each.interval)})"
                for name, each in zip(by_metric, column, strict=True)
            ),
        ]
        for column in zip(*by_metric.values(), strict=True)
    ]
    print_rows(screen, columns, rows)


def print_scores(screen: Console, scores: RunScores, *, every: bool = False) -> None:
    """Prints the main metrics, each with its interval and its definition; every: all of them, and the work."""
    rows = [[row.name, row.value, row.bounds, row.definition] for row in metric_rows(scores) if every or row.is_main]
    work = (
        ("steps", scores.steps, "steps carried out"),
        ("prompt_tokens", scores.prompt_tokens, "tokens in prompts"),
        ("cached_prompt_tokens", scores.cached_prompt_tokens, "those of them that were in the model's cache already"),
        ("generated_tokens", scores.generated_tokens, "tokens that the model wrote"),
    )
    rows += [[name, f"{value:,}", "", definition] for name, value, definition in work] if every else []
    print_rows(screen, _measured("", "value"), rows)
