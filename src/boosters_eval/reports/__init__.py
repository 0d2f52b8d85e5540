"""Documents, charts, and their renderings: terminal, Markdown, HTML, CSV, LaTeX. It knows no result type."""
