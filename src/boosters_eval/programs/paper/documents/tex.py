"""TeX inside a cell, a name or a caption as plain text. Raised and lowered text stays marked, as ^{...} and _{...}."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

MAX_TEXT = 4_000  # characters of one cell or caption; nothing printed on a page is longer
PYLATEXENC = "pip install 'boosters-eval[paper]'"
_STRONG = re.compile(r"\\(?:textbf|mathbf|boldsymbol|bm|bfseries|bf|underline|uline|emph|textit|mathit|best|second)\b")
_WRAPPERS = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|sl|md|up|normal)?|math(?:bf|it|rm|sf|tt|cal|bb|normal)|boldsymbol|bm|underline|uline"
    r"|emph|mbox|hbox|makebox|ensuremath|operatorname\*?|makecell(?:\[[^\]]*\])?|shortstack(?:\[[^\]]*\])?|thead|num"
    r"|resizebox\{[^}]*\}\{[^}]*\}|rotatebox(?:\[[^\]]*\])?\{[^}]*\}|textcolor(?:\[[^\]]*\])?\{[^}]*\})(?![A-Za-z])\s*"
)
_QUANTITY = re.compile(r"\\(?:SI|qty)\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_SILENT = re.compile(
    r"\\(?:definecolor(?:\[[^\]]*\])?\{[^}]*\}\{[^}]*\}\{[^}]*\}"
    r"|(?:color|cellcolor|rowcolor)(?:\[[^\]]*\])?\{[^}]*\}|(?:hspace|vspace)\*?\{[^}]*\}|[hv]?phantom\{[^{}]*\}"
    r"|(?:cite[a-z]*|footnotemark|footnote|label|ref)\*?(?:\[[^\]]*\])*\{[^{}]*\}"
    r"|(?:bf|bfseries|it|itshape|em|rm|sf|tt|sc|tiny|scriptsize|scriptstyle|scriptscriptstyle|displaystyle|textstyle"
    r"|footnotesize|small|normalsize|large|Large|centering|raggedright|raggedleft|hfill|hfil|relax|protect|strut|noindent"
    r"|left|right|big|Big|limits|hline|toprule|midrule|bottomrule|leavevmode|unskip|xspace|boldmath)(?![A-Za-z]))\s*"
)
_SYMBOLS = {
    "pm": "±", "textpm": "±", "times": "×", "cdot": "·", "uparrow": "↑", "downarrow": "↓", "dagger": "†", "dag": "†",
    "ddagger": "‡", "ddag": "‡", "ast": "*", "star": "*", "S": "§", "sim": "~", "approx": "≈", "le": "≤", "leq": "≤",
    "ge": "≥", "geq": "≥", "lt": "<", "gt": ">", "infty": "∞", "checkmark": "✓", "textendash": "–", "textemdash": "—",
    "mu": "µ", "quad": " ", "qquad": " ", "newline": " ", "tabularnewline": " ", "textasciitilde": "~",
}  # fmt: skip
_NAMED = re.compile(r"\\(" + "|".join(sorted(_SYMBOLS, key=len, reverse=True)) + r")(?![A-Za-z])\s*")
_SCRIPTS = re.compile(r"\\text(super|sub)script\s*(?=\{)")
_ESCAPED = re.compile(r"\\([%&#_$])")
_THIN = re.compile(r"\\[,!;:>]|\\thinspace(?![A-Za-z])")
_MACRO = re.compile(r"\\[A-Za-z]+|\\[^A-Za-z]")


def has_tex(text: str) -> bool:
    """Whether there is anything to convert."""
    return "\\" in text or "$" in text or "^" in text or "{" in text


def is_strong(text: str) -> bool:
    """Whether a part is emphasized."""
    return _STRONG.search(text) is not None


@lru_cache(maxsize=20_000)
def plain(text: str) -> str:
    """The text that TeX would print. A macro that is not known stays as ⟨name⟩, so that no number can hide it."""
    if not has_tex(text):
        return text
    text = text[:MAX_TEXT].replace("~", " ").replace("\\\\", " ")
    text = _QUANTITY.sub(r"\1 \2", text)
    text = _SCRIPTS.sub(lambda match: "^" if match[1] == "super" else "_", text)
    text = _SILENT.sub(" ", _WRAPPERS.sub("", text))
    text = _THIN.sub("\u2009", _NAMED.sub(lambda match: _SYMBOLS[match[1]], text))
    if text.count("$") - text.count("\\$") != 1:  # a single one is a currency
        text = re.sub(r"(?<!\\)\$", "", text)
    text = _ESCAPED.sub(lambda match: "\ue000" if match[1] == "_" else match[1], text.replace("\\ ", " "))
    if _MACRO.search(text):
        text = _converted(text)
    return _without_braces(text).replace("\ue000", "_").strip()


def _converted(text: str) -> str:
    """What is left for the library: accents, letters, symbols. Without it they stay, and are no numbers."""
    if find_spec("pylatexenc") is None:
        return text
    # The library would drop the braces of scripts and groups, which are handled here.
    return _MACRO_WITH_ARGUMENT.sub(_replacement, text)


_MACRO_WITH_ARGUMENT = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])\s*(?:\{[^{}\\]{0,40}\}|(?<=[\"'`^~=.])\s*\\?[A-Za-z])?")


def _replacement(match: re.Match[str]) -> str:
    name = re.match(r"\\([A-Za-z]+|.)", match[0], re.DOTALL)
    assert name is not None  # noqa: S101 (for the type checker)
    if name[1] in "{}":
        return " "
    if name[1] not in _known():
        return f"⟨{name[1]}⟩{match[0][name.end() :]}"
    try:
        return str(_reader().latex_to_text(match[0]))
    except Exception:  # noqa: BLE001 (whatever a library makes of text from outside, the cell is simply not read)
        return f"⟨{name[1]}⟩"


@cache
def _reader() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text  # noqa: PLC0415 (an extra)

    return LatexNodes2Text(math_mode="text", strict_latex_spaces=False)


@cache
def _known() -> frozenset[str]:
    from pylatexenc.latex2text import get_default_latex_context_db  # noqa: PLC0415 (an extra)

    return frozenset(spec.macroname for spec in get_default_latex_context_db().iter_macro_specs())


def _without_braces(text: str) -> str:
    """Groups print nothing of their own; those of scripts are kept, and a script without braces gets them."""
    if not set(text) & {"{", "}", "^", "_"}:
        return text
    found: list[str] = []
    kinds: list[bool] = []  # of the open groups: whether it is a script
    script = False
    for char in text:
        if char == "{":
            kinds.append(script)
            found.append("{" if script else "")
        elif char == "}":
            found.append("}" if kinds and kinds.pop() else "")
        elif char in "^_":
            found.append(char)
        elif script and not char.isspace():
            found.append(f"{{{char}}}")
        else:
            found.append(char)
        script = char in "^_" or (script and char.isspace())
    return "".join(found) + "}" * sum(kinds)
