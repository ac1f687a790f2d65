"""The colours of the report's pictures: named in CSS, so that both modes can set them.

A drawing uses stand-in colours. `inline` replaces them by CSS variables, which the page
defines once (`PALETTE_CSS`); a picture in a file of its own carries them
(`standalone`).
"""

import re

# Stand-in colour -> (CSS variable, light value, dark value). The hues are those of
# Okabe and Ito, told apart with colour-blind eyes too; dark values are lifted.
COLOURS = {
    "#000001": ("ink", "#1f2328", "#e6edf3"),
    "#000002": ("muted", "#656d76", "#8d96a0"),
    "#000003": ("rule", "#d0d7de", "#3d444d"),
    "#000004": ("blue", "#0067a5", "#58b4f0"),
    "#000005": ("orange", "#b85c00", "#f0a04b"),
    "#000006": ("green", "#00795a", "#3fc79a"),
    "#000007": ("purple", "#8a3f76", "#dc8fc4"),
}
INK, MUTED, RULE, BLUE, ORANGE, GREEN, PURPLE = COLOURS


def _variables(index: int) -> str:
    return "".join(f"--{entry[0]}:{entry[index]};" for entry in COLOURS.values())


PALETTE_CSS = (
    f":root{{{_variables(1)}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(2)}}}}}"
    f"@media print{{:root{{{_variables(1)}}}}}"
)

CARD_CSS = (
    "svg{background:#fff}@media (prefers-color-scheme:dark){svg{background:#0d1117}}"
)


def inline(name: str, svg: str) -> str:
    """Returns the SVG element alone: no XML prologue, no unused ids, CSS colours.

    Args:
        name: name of the picture, its CSS class.
        svg: a whole SVG document that was drawn in the stand-in colours.
    """
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(
        r' id="([^"]+)"',
        lambda found: found.group(0) if found.group(1) in used else "",
        svg,
    )
    for stand_in, (variable, *_) in COLOURS.items():
        svg = svg.replace(stand_in, f"var(--{variable})")
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.replace("<svg ", f'<svg class="figure {name}" role="img" ', 1)


def card(svg: str) -> str:
    """Returns a picture with its own ground, which reads on a page of either colour.

    A page may be dark while the system of its reader is light, or the other way round;
    lines and ground then still fit each other.
    """
    return standalone(svg).replace("<style>", f"<style>{CARD_CSS}", 1)


def standalone(svg: str) -> str:
    """Returns a picture for a file of its own, with its colours for both modes."""
    return re.sub(
        r"(<svg[^>]*>)", rf"\1<style>{PALETTE_CSS}</style>", svg, count=1
    )  # fmt: skip
