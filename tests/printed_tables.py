"""A table of results, written in each of the three languages."""

from __future__ import annotations

from html import escape


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def html(header, rows):
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>\n"


def latex(header, rows):
    def line(cells):
        return (
            " & ".join(cell.replace("_", r"\_").replace("%", r"\%").replace("±", r"$\pm$") for cell in cells) + r" \\"
        )

    body = "\n".join(line(row) for row in rows)
    return "\n".join([r"\begin{tabular}{" + "l" * len(header) + "}", r"\toprule", line(header), r"\midrule", body,
                      r"\bottomrule", r"\end{tabular}", ""])  # fmt: skip


WRITERS = {".md": markdown, ".html": html, ".tex": latex}
