"""The documentation: every page in the site's menu, every link leads somewhere, every name and command described.

The site itself is built by `make docs`, which fails on any warning.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import stoker
from stoker.doctor.check.registry import all_rules
from stoker.records import ACCOUNTS
from stoker.tf_internals.versions import TENSORFLOW
from tests.support import ROOT, SRC

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
READ = [*ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def in_menu() -> list[str]:
    menu = text_of(ROOT / "mkdocs.yml").split("\nnav:\n")[1]
    return re.findall(r"([\w./-]+\.md)\s*$", menu, re.MULTILINE)


def anchors(path: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", text_of(path), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"[\s]+", "-", heading) for heading in words}


def kept_elsewhere() -> set[str]:
    """Places in the site of files that are elsewhere in the repository, as its hook has them."""
    tree = ast.parse(text_of(ROOT / "tools" / "mkdocs_pages.py"))
    (pages,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PAGES"
    )
    return set(ast.literal_eval(pages))


def test_the_menu_has_every_page_once() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in PAGES}
    assert sorted(in_menu()) == sorted(pages | kept_elsewhere())


@pytest.mark.parametrize("page", [*PAGES, *READ], ids=shown)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", text_of(page))):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{shown(page)} links to {link}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{shown(page)} links to {link}"


def test_every_public_name_has_a_reference_entry() -> None:
    pages = "\n".join(text_of(page) for page in (DOCS / "reference").glob("*.md"))
    described = set(re.findall(r"^::: stoker\.(\w+)$", pages, re.MULTILINE))
    assert described == set(stoker.__all__) - {"__version__"}
    index = text_of(DOCS / "reference" / "index.md")
    assert set(re.findall(r"\[stoker\.(\w+)\]", index)) == described
    assert "`__version__`" in index


@pytest.mark.parametrize(
    ("page", "module"),
    [("data", stoker.data), ("recipes", stoker.recipes), ("software-gpu", stoker.software_gpu)],
)
def test_a_modules_reference_page_lists_all_of_its_names(page: str, module: ModuleType) -> None:
    listed = re.findall(r"^ {8}- (\w+)$", text_of(DOCS / "reference" / f"{page}.md"), re.MULTILINE)
    assert sorted(listed) == sorted(module.__all__)


def test_the_page_of_commands_says_what_the_commands_say() -> None:
    command = [sys.executable, "tools/make_command_reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_pages_of_the_rules_say_what_the_rules_say(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stoker", "explain", "--write", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    written = {path.name: text_of(path) for path in tmp_path.iterdir()}
    assert written == {path.name: text_of(path) for path in (DOCS / "rules").iterdir()}
    assert set(written) == {"README.md", *(f"{rule.slug}.md" for rule in all_rules())}


def test_the_page_on_reports_lists_every_section_of_a_report() -> None:
    assets = SRC / "doctor" / "report" / "page" / "assets"
    sources = [text_of(path) for path in assets.glob("*.js") if path.name != "compare.js"]
    sections = {title for text in sources for title in re.findall(r'section\("\w+", "([^"]+)"', text)}
    listed = re.findall(r"^\| ([A-Z][^|]+) \|", text_of(DOCS / "page.md"), re.MULTILINE)
    assert set(listed) == sections


def test_the_tutorial_on_ledgers_explains_every_account() -> None:
    text = text_of(DOCS / "tutorials" / "read-a-ledger.md").split("| account | ")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| (\w+) \|", text, re.MULTILINE)) == set(ACCOUNTS)


def test_the_architecture_names_every_room() -> None:
    named = set(re.findall(r"^\| `(\w+)/`", text_of(ROOT / "ARCHITECTURE.md"), re.MULTILINE))
    rooms = {path.name for path in SRC.iterdir() if (path / "__init__.py").exists()}
    assert rooms - {"records"} == named - {"records"}


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## (?:\[)?(\d[\w.]*)", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == stoker.__version__


def test_the_walks_pass_only_modules_that_are_there() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+)`", text_of(DOCS / "how-it-works.md")))
    assert len(named) > 50
    gone = [n for n in sorted(named) if not (SRC / f"{n}.py").exists() and not (SRC / n).is_dir()]
    assert gone == []


def test_the_architecture_names_only_files_that_are_there() -> None:
    named = set(re.findall(r"`([\w/]+\.py|[\w/]+/)`", text_of(ROOT / "ARCHITECTURE.md")))
    assert len(named) > 15
    gone = [n for n in sorted(named) if not (ROOT / n).exists() and not (SRC / n).exists()]
    assert gone == []


def test_ci_covers_every_supported_version() -> None:
    workflow = text_of(ROOT / ".github" / "workflows" / "tests.yml")
    listed = {
        name: re.findall(r'"([\d.]+)"', line)
        for name, line in re.findall(r"^        (python|tensorflow): (\[.*\])$", workflow, re.M)
    }
    supported_python = re.findall(r"Python :: (3\.\d+)", text_of(ROOT / "pyproject.toml"))
    assert listed["python"] == supported_python
    major, oldest = TENSORFLOW.oldest
    supported = [f"{major}.{minor}" for minor in range(oldest, TENSORFLOW.newest[1] + 1)]
    assert listed["tensorflow"] == supported


def packages_with_a_table() -> list[Path]:
    return [p.parent for p in sorted(SRC.rglob("__init__.py")) if "| subject |" in text_of(p)]


@pytest.mark.parametrize("package", packages_with_a_table(), ids=shown)
def test_a_packages_docstring_names_each_of_its_modules(package: Path) -> None:
    table = re.findall(
        r"^\| ([^|]+) \|", ast.get_docstring(ast.parse(text_of(package / "__init__.py"))) or "", re.M
    )
    named = {name.strip(" /`") for row in table for name in row.split(",")}
    parts = {p.stem for p in package.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert parts - {"__init__", "__main__"} - named == set()
