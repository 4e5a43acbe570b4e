"""A hook of mkdocs: pages of the site whose files are kept elsewhere in the repository, with their links set right."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
# The file in the repository, by its place in the site.
PAGES = {
    "architecture.md": "ARCHITECTURE.md",
    "benchmarks.md": "benchmarks/README.md",
    "changelog.md": "CHANGELOG.md",
    "code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
ASSETS = {"whatif.svg": "benchmarks/whatif.svg"}
_PLACES = {source: place for place, source in (PAGES | ASSETS).items()}
_LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and the pictures they show."""
    for place, source in PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    for place, source in ASSETS.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links are written as the repository has them; here they become those of the site."""
    place = page.file.src_uri
    directory = posixpath.dirname(PAGES.get(place, f"docs/{place}"))

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(directory, match[1]))
        there = _PLACES.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{match[2] or ''})"

    return _LINK.sub(link, markdown)
