"""The HTML document. It contains its scripts and styles, which are allowed by their hashes; `fetch` brings the data.

Text from users (names of runs, series, parameters, files) is never part of the document. The scripts insert it as text.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from stoker.doctor.report.page.document import list_hashes

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
        ("stoker.tracking.ui", "jobs.js"),
        ("stoker.tracking.ui", "router.js"),
    ),
)


@cache
def make_document() -> tuple[str, str]:
    """Return the document, and the content security policy to send with it."""
    scripts = ["\n".join(_read_asset(*one) for one in block) for block in _SCRIPTS]
    style = "\n".join(_read_asset(*one) for one in _STYLES)
    policy = (
        f"default-src 'none'; script-src {list_hashes(scripts)}; style-src {list_hashes([style])}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    text = "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<link rel="icon" href="data:,">\n<title>Stoker</title>\n',
            f"<!-- The charts are drawn by uPlot.\n{_read_asset('stoker.doctor.report.page', 'uPlot.LICENSE')}-->\n",
            f"<style>{style}</style>\n</head>\n<body>\n",
            "<noscript><p>This page needs JavaScript. On the terminal: stoker runs</p></noscript>\n",
            '<script type="application/json" id="data">{}</script>\n',
            *(f"<script>{script}</script>\n" for script in scripts),
            "</body>\n</html>\n",
        )
    )
    return text, policy


def _read_asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets").joinpath(name).read_text(encoding="utf-8")
