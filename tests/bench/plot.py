"""Draws figures with bars as an SVG: how far each is on the good side of its bar, on a logarithmic axis, with its 95 % interval."""
import math
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 1000, 420, 190, 92, 26
GOOD, BAD, GREY = "#1a7f37", "#cf222e", "#57606a"


def margin(value, bar):
    """1 = the bar itself, more = better."""
    good = value / bar.value if bar.at_least else bar.value / value
    return min(max(good, 1e-3), 1e3)


def draw(figures, title):
    """The SVG's text. Figures without a bar, or without a measured value, are left out."""
    rows = [figure for figure in figures if figure.bar and figure.ratio]
    if not rows:
        raise ValueError("no figure has both a value and a bar: there is nothing to draw")
    ends = [[margin(value, row.bar) for value in (row.ratio, row.lo or row.ratio, row.hi or row.ratio)] for row in rows]
    low = math.floor(2 * math.log10(min(0.5, *map(min, ends)))) / 2
    high = math.ceil(2 * math.log10(max(2, *map(max, ends)))) / 2
    height = TOP + ROW * len(rows) + 40
    bottom = TOP + ROW * len(rows)

    def x(good):
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(good) - low) / (high - low)

    def text(at, y, words, style="", anchor="start"):
        return f'<text x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{escape(words)}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
           "<style>text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1f2328}</style>",
           '<rect width="100%" height="100%" fill="#fff"/>',
           text(20, 32, title, 'style="font-size:18px;font-weight:600"'),
           text(20, 54, "Each dot: a measured figure against its bar. Right of the line the bar is held. Whiskers: 95 % interval.", f'style="fill:{GREY}"')]
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        for step in (1, 2, 5) if high - low <= 1.5 else (1,):
            good = step * 10.0**exponent
            if not low <= math.log10(good) <= high:
                continue
            at = x(good)
            out.append(f'<line x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" y2="{bottom}" stroke="{GREY if good == 1 else "#e6e8eb"}"/>')
            out.append(text(at, bottom + 16, "the bar" if good == 1 else f"{good:g} ×" if good > 1 else f"{1 / good:g} × short", anchor="middle"))
    for number, (row, (value, *interval)) in enumerate(zip(rows, ends)):
        y = TOP + ROW * number + ROW / 2
        colour = GOOD if row.held() else BAD
        if number % 2 == 0:
            out.append(f'<rect x="0" y="{y - ROW / 2:.1f}" width="{WIDTH}" height="{ROW}" fill="#1f2328" fill-opacity="0.035"/>')
        out.append(text(20, y + 4, row.name, 'style="font-weight:600"'))
        out.append(text(LEFT - 12, y + 4, row.workload, anchor="end"))
        out.append(f'<line x1="{x(min(interval)):.1f}" y1="{y}" x2="{x(max(interval)):.1f}" y2="{y}" stroke="{colour}" stroke-width="3" '
                   'stroke-opacity="0.4"/>')
        out.append(f'<circle cx="{x(value):.1f}" cy="{y}" r="5" fill="{colour}"/>')
        unit = row.bar.unit and f" {row.bar.unit}"
        out.append(text(WIDTH - RIGHT + 20, y + 4, f"{row.ratio:.3g}{unit}  ({row.bar})", f'style="fill:{colour}"'))
    return "\n".join([*out, "</svg>", ""])
