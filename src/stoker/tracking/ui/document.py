"""The one HTML document. Its scripts and styles stand in it and are allowed by their hashes; data comes by `fetch`.

What users wrote (names of runs, series, parameters, files) is never part of the document: the scripts put it in place
as text.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

_STYLES = (
    ("stoker.doctor.report.page", "uPlot.min.css"),
    ("stoker.doctor.report.page", "page.css"),
    ("stoker.tracking.ui", "web.css"),
)
_SCRIPTS = (
    (("stoker.doctor.report.page", "uPlot.iife.min.js"),),
    (
        ("stoker.doctor.report.page", "dom.js"),
        ("stoker.doctor.report.page", "charts.js"),
        ("stoker.tracking.ui", "server.js"),
        ("stoker.tracking.ui", "curves.js"),
        ("stoker.tracking.ui", "list.js"),
        ("stoker.tracking.ui", "run.js"),
        ("stoker.tracking.ui", "together.js"),
        ("stoker.tracking.ui", "lines.js"),
        ("stoker.tracking.ui", "router.js"),
    ),
)


@cache
def document() -> tuple[str, str]:
    """The document, and the content security policy it is sent with."""
    scripts = ["\n".join(_asset(*one) for one in block) for block in _SCRIPTS]
    style = "\n".join(_asset(*one) for one in _STYLES)
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes([style])}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    text = "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<link rel="icon" href="data:,">\n<title>Stoker</title>\n',
            f"<!-- The charts are drawn by uPlot.\n{_asset('stoker.doctor.report.page', 'uPlot.LICENSE')}-->\n",
            f"<style>{style}</style>\n</head>\n<body>\n",
            "<noscript><p>This page needs JavaScript. On the terminal: stoker runs</p></noscript>\n",
            '<script type="application/json" id="data">{}</script>\n',
            *(f"<script>{script}</script>\n" for script in scripts),
            "</body>\n</html>\n",
        )
    )
    return text, policy


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _hashes(blocks: list[str]) -> str:
    digests = (hashlib.sha256(block.encode("utf-8")).digest() for block in blocks)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
