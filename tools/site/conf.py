"""Settings of Sphinx, by which tools/site/build makes the site that the service serves at /docs/guide."""

import gc
import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

# Looking for garbage, of which there is little, would take a third of the time.
gc.disable()

project = html_title = "Ironlaw"
root_doc = "README"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
smartquotes = False
highlight_language = "text"
# What GitHub shows of the same files: its anchors of titles, and nothing that only MyST knows.
myst_heading_anchors = 6
myst_disable_syntax = ["myst_block_break", "myst_line_comment", "myst_role", "myst_target"]

html_theme = "alabaster"
html_theme_options = {
    "description": "Capacity planning for machine learning",
    "github_button": False,
    "page_width": "1200px",
    "sidebar_width": "280px",
    "font_family": "system-ui, sans-serif",
    "font_size": "16px",
}
html_sidebars = {"**": ["about.html", "search_form.html", "contents.html"]}
html_static_path = ["static"]
templates_path = ["templates"]
html_copy_source = html_use_index = html_show_copyright = html_show_sphinx = False

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)[^)]*\)")
_PAGE = re.compile(r"\]\((?!\.\.)([^)#:]+)\.md\b[^)]*\)")
_SECTION = re.compile(r"(?m)^(?=## )")


def name_sources(app: Sphinx, docname: str, content: list[str]) -> None:
    """Write links to files outside of docs/ as text with the path: the site does not hold them."""
    folder, docs = (Path(app.srcdir) / docname).parent, Path(app.srcdir).resolve()

    def named(link: re.Match[str]) -> str:
        text, target = link.groups()
        path = (folder / target).resolve()
        if path.is_relative_to(docs):
            return link[0]
        source = path.relative_to(docs.parent).as_posix()
        return f"`{source}`" if text.strip("`/") == source else f"{text} (`{source}`)"

    content[0] = _OUTSIDE.sub(named, content[0])


def list_pages(_app: Sphinx, docname: str, content: list[str]) -> None:
    """Make the pages that an index links, under its titles, the contents of the site."""
    if Path(docname).name != root_doc:
        return
    listed: set[str] = set()
    parts = []
    for section in _SECTION.split(content[0]):
        pages = [page for page in dict.fromkeys(_PAGE.findall(section)) if page not in listed]
        listed.update(pages)
        parts += [section, _contents(section.partition("\n")[0], pages)]
    content[0] = "".join(parts)


def _contents(title: str, pages: list[str]) -> str:
    """A table of contents that only the navigation shows."""
    if not pages:
        return ""
    options = [":hidden:", ":titlesonly:"]
    if title.startswith("## "):
        options.append(f":caption: {title.removeprefix('## ')}")
    return "\n".join(["\n", "```{toctree}", *options, "", *pages, "```", "\n"])


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Write the page of the index once more, under the name that servers give to a folder."""
    if error is None:
        shutil.copyfile(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    """Connect the above to the steps of Sphinx."""
    app.connect("source-read", name_sources)
    app.connect("source-read", list_pages)
    app.connect("build-finished", write_index)
