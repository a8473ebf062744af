"""HTML that needs nothing else: no scripts, no network, and the user's words as text only."""

from __future__ import annotations

from html import escape

from tinyfuse.inspect.writing import printable

_STYLE = """
.tinyfuse { font: 15px/1.45 system-ui, sans-serif; color: #1c2430; background: #ffffff;
  max-width: 1200px; padding: .5em 1em; }
.tinyfuse h1 { font: 600 20px/1.3 ui-monospace, monospace; }
.tinyfuse h2 { font-size: 18px; margin: 1.6em 0 .5em; }
.tinyfuse h3 { font: 600 15px/1.3 ui-monospace, monospace; margin: 0 0 .3em; }
.tinyfuse section { border-top: 1px solid #d5dbe3; padding: .9em 0; }
.tinyfuse table { border-collapse: collapse; }
.tinyfuse td, .tinyfuse th { padding: .15em .8em; text-align: right; white-space: nowrap; }
.tinyfuse td:first-child, .tinyfuse th:first-child { text-align: left; padding-left: 0; }
.tinyfuse thead { border-bottom: 1px solid #8b97a8; }
.tinyfuse pre { background: #f5f7fa; padding: .6em .8em; margin: 0; overflow-x: auto;
  font: 13px/1.4 ui-monospace, monospace; text-align: left; white-space: pre; }
.tinyfuse ul { margin: .5em 0; padding-left: 1.3em; }
.tinyfuse .beside { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr);
  gap: .6em; margin: .5em 0; }
.tinyfuse .drawing { overflow-x: auto; }
.tinyfuse .comment { color: #5f6f83; font-style: italic; }
.tinyfuse .keyword { color: #7a2fa0; }
.tinyfuse .number { color: #0a6b58; }
.tinyfuse .string { color: #9a4a12; }
.tinyfuse svg text { font: 12px ui-monospace, monospace; fill: #1c2430; }
.tinyfuse svg .kernel { fill: #eef2f8; stroke: #8b97a8; }
.tinyfuse svg .node { fill: #ffffff; stroke: #5f6f83; }
.tinyfuse svg .input { fill: #e4f2e6; }
.tinyfuse svg .stored { fill: #fdf0d5; }
.tinyfuse svg .output { fill: #fdf0d5; stroke-width: 2; }
.tinyfuse svg .edge { fill: none; stroke: #5f6f83; }
.tinyfuse svg .head { fill: #5f6f83; stroke: none; }
""".strip()

# Nothing is loaded and nothing run, whatever the page holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Any text, to be read as it is; Markup stays."""
    if isinstance(text, Markup):
        return text
    return Markup("\n".join([escape(printable(line)) for line in text.split("\n")]))


def joined(*parts: str) -> Markup:
    return Markup("".join(map(escaped, parts)))


def element(name: str, *parts: str, **attributes: object) -> Markup:
    """`<name>…</name>`; attributes as in Python, `class_` for class, `stroke_width` for …-…."""
    words = [
        f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"'
        for key, value in attributes.items()
    ]
    return Markup(f"<{name}{''.join(words)}>{joined(*parts)}</{name}>")


def fragment(*parts: str) -> Markup:
    """What stands within a page or a notebook, with its style, which reaches nothing else."""
    return element("div", element("style", Markup(_STYLE)), *parts, class_="tinyfuse")


def page(title: str, body: Markup) -> str:
    """A whole document, well-formed as XML too."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
    head = element(
        "head", Markup('<meta charset="utf-8"/>'), Markup(policy), element("title", title)
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body), lang='en')}\n"
