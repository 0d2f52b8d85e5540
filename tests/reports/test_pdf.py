"""The PDF of a chart is drawn from its SVG: the same places, the same texts, a file that readers accept."""

import re
import zlib

import pytest

from boosters_eval.reports.html.plots import draw_pdf


def content(pdf):
    return zlib.decompress(re.search(rb"stream\n(.*)\nendstream", pdf, re.DOTALL)[1]).decode()


def drawn(inner, size="0 0 100 50"):
    return content(draw_pdf(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}">{inner}</svg>'))


def test_file_has_one_page_of_the_drawing_s_size_and_a_true_table_of_objects():
    pdf = draw_pdf('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 200"><rect width="10" height="10"/></svg>')
    assert b"/MediaBox [0 0 300 150]" in pdf
    place = int(re.search(rb"startxref\n(\d+)\n", pdf)[1])
    assert pdf[place : place + 4] == b"xref"
    for number, start in enumerate(re.findall(rb"(\d{10}) 00000 n", pdf), 1):
        assert pdf[int(start) :].startswith(b"%d 0 obj" % number)


def test_the_top_of_the_drawing_is_the_top_of_the_page():
    assert drawn('<line x1="0" y1="0" x2="5" y2="0" stroke="#000"/>').startswith("q 0.75 0 0 -0.75 0 37.5 cm")


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (
            '<line x1="1" y1="2" x2="3" y2="4" stroke="#ff0000" stroke-width="2"/>',
            "1 0 0 RG 2 w 0 J [] 0 d 1 2 m 3 4 l S",
        ),
        ('<rect x="1" y="2" width="50%" height="4" fill="#0000ff"/>', "0 0 1 rg 1 2 50 4 re f"),
        ('<polygon points="0,0 4,0 4,3" fill="#00ff00"/>', "0 1 0 rg 0 0 m 4 0 l 4 3 l h f"),
        ('<path d="M1 2H5v3h-1L0 0" fill="none" stroke="#000"/>', "1 2 m 5 2 l 5 5 l 4 5 l 0 0 l S"),
        ('<path d="M1 2v8M3 4" fill="none" stroke="#000"/>', "1 2 m 1 10 l 3 4 m S"),
    ],
)
def test_each_shape_is_drawn(element, expected):
    assert expected in drawn(element)


def test_what_has_neither_color_nor_line_is_left_out():
    assert drawn('<circle cx="1" cy="1" r="1" fill="none"/>').splitlines()[1:] == ["Q"]


def test_opacity_is_a_state_of_the_page():
    pdf = draw_pdf(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="1" height="1" opacity=".25"/></svg>'
    )
    assert b"/ExtGState << /G0 << /ca 0.25 /CA 0.25 >> >>" in pdf
    assert "/G0 gs" in content(pdf)


def test_text_is_placed_by_its_anchor_and_escaped():
    middle = drawn('<text x="50" y="9" text-anchor="middle" font-size="10">ii</text>')
    assert "1 0 0 -1 47.78 9 Tm /R 10 Tf <6969> Tj" in middle  # two letters of 2.22
    assert f"<{b'(a)&'.hex()}>" in drawn('<text x="0" y="0">(a)&amp;</text>')


def test_arrows_come_from_the_font_of_symbols():
    assert "<524d534520> Tj /S 11 Tf <af> Tj" in drawn('<text x="0" y="0">RMSE ↓</text>')


def test_turned_and_moved_groups_are_followed():
    turned = drawn('<g transform="rotate(-90 12 20)"><rect x="12" y="20" width="1" height="1"/></g>')
    assert turned.splitlines()[1].startswith("q 0 -1 1 0 -8 32 cm")
