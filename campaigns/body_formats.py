"""What a campaign is written in, turned into the HTML that is sent.

Everything here works on text whose merge tags are hidden words (``MergeTags``).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import partial
from itertools import chain, pairwise

from .merge_tags import MergeTags

DOCUMENT = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body{attributes}>
{body}
</body>
</html>
"""
_PROSE = (
    ' dir="auto" style="margin:0 auto;padding:16px;max-width:600px;'
    "font-family:-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;"
    'font-size:16px;line-height:1.5;color:#1f2328"'
)
_BODY_START = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)
_IS_DOCUMENT = re.compile(r"<(?:html|body)\b", re.IGNORECASE)
_HIDDEN = (
    "display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;"
    "overflow:hidden;mso-hide:all"
)
# Keeps mail programs from filling the line after the preheader with the body's first words.
_FILLER = "&#847;&zwnj;&nbsp;" * 40
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"}
VOID |= {"track", "wbr"}

#: Elements inside each other. Inlining recurses in native code; real mail is far below.
MAX_INLINE_DEPTH = 100
# Bounds that keep inlining to seconds and megabytes: characters of formatting elements that are
# opened again, steps of setting declarations, characters of style sheets copied.
_MAX_REPEATED = 50_000_000
_MAX_DECLARED = 2_000_000_000
_MAX_COPIED = 100_000_000
# One tag or comment. No quantifier gives back what it took: hostile text costs one look.
_ATTRIBUTES = (
    r"""(?:[\s/]++[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>=`]++))?+"""
    r"""|(?<=["'])[^\s"'<>/=]++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+[\s/]*+"""
)
_MARKUP = re.compile(
    rf"<!--(?!-?>)(?P<comment>.*?)-->|<(?P<close>/?)(?P<name>[A-Za-z][\w:-]*+)(?P<rest>{_ATTRIBUTES})>",
    re.DOTALL,
)
_MARKUP_START = re.compile(r"<(?=[A-Za-z/!?])")
_ATTRIBUTE_VALUE = re.compile(r"""=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=`]+)""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>=`]+)""")
_STYLE_ATTRIBUTE = re.compile(r' style="[^"]*"')
_STYLE = re.compile(r"<style\b", re.IGNORECASE)
_MEDIA = re.compile(r"\smedia\s*=\s*(?![\"']?(?:all|screen)[\"']?(?:\s|$))", re.IGNORECASE)
# css_inline does not look at media="print"; the second attribute tells our mark from an author's.
_NOT_NOW = ' data-css-inline="ignore" data-not-inlined="1"'
_NOT_NOW_MADE = re.compile(
    r' data-(?:css-inline="ignore" data-not-inlined="1"|not-inlined="1" data-css-inline="ignore")'
)
_DOCTYPE = re.compile(r"\s*(<!doctype\b[^>]*>)", re.IGNORECASE)
_RAW_TEXT = {"style", "script", "title", "textarea"}
# Inside these, what is a tag and what is text depends on more than the text.
_UNCERTAIN = {"svg", "math", "noscript", "noembed", "noframes", "iframe", "xmp", "plaintext"}
_UNCERTAIN |= {"template", "select", "frameset"}
# A parser opens these again in each block after the one in which they were not closed.
_FORMATTING = {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike"}
_FORMATTING |= {"strong", "tt", "u"}
# A parser adds these where they are left out.
_IMPLIED = {"html", "head", "body", "tbody"}


class FormatError(ValueError):
    """The body is not what its format says; the message says why. ``at``: where in it, as an
    offset, if that is known."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


def from_html(source: str, title: str) -> str:
    """A whole document as it is; a fragment in a plain one."""
    if _IS_DOCUMENT.search(source):
        return source
    return DOCUMENT.format(title=html.escape(title), attributes="", body=source)


def from_markdown(source: str, title: str, block: str) -> str:
    """CommonMark as a plain document. Raises ``FormatError`` without the extra."""
    body = markdown_fragment(source, block)
    return DOCUMENT.format(title=html.escape(title), attributes=_PROSE, body=body)


def markdown_fragment(source: str, block: str) -> str:
    """CommonMark with tables and strikethrough, as what stands inside of a document. Raises
    ``FormatError`` without the extra."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise FormatError("Markdown needs django-sendonce[markdown] to be installed.") from error
    body = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    # {% if %} on a line of its own is no paragraph.
    return re.sub(rf"<p>\s*((?:{block}\s*)+)</p>", r"\1", body).strip()


def inlined(document: str, tags: MergeTags) -> str:
    """The document with the rules of its style elements in style attributes too.

    Many mail programs drop ``<style>``. The elements stay for those that do not: media queries
    and ``:hover`` can't be inlined. Nothing is loaded: ``<link>`` and ``@import`` are left alone.

    ``tags`` are those that are hidden in it. The document is returned as it is without a style
    element, without the extra, and whenever inlining is not certain to be harmless:

    - the parser would move, lose or split a merge tag (``{% if %}`` between table rows), or
      close an element on the other side of one;
    - a style sheet, a class or an id depends on a merge tag;
    - the markup can be read in two ways, or a parser that writes down what it read makes
      another document of it;
    - the CSS of a style attribute can't be read;
    - it would take too long, or the parser's recursion too deep.
    """
    if not _STYLE.search(document):
        return document
    try:
        from css_inline import CSSInliner, InlineError
    except ImportError:
        return document
    before = _Markup(document, tags)
    if not before.certain or not before.sheets:
        return document
    inliner = partial(
        CSSInliner, keep_style_tags=True, keep_link_tags=True, load_remote_stylesheets=False
    )
    try:
        # What the parser alone changes, to compare with.
        parse = inliner(inline_style_tags=False).inline
        parsed = parse(before.marked)
        if _too_much(before.sheets, parsed):
            return document
        if parse(parsed) != parsed:
            # Such as a list in a row of a table: written down, it is another document.
            return document
        made = inliner().inline(before.marked)
    except InlineError:
        # The message is about inlining alone; mail programs read the document nevertheless.
        return document
    words, blocks = re.compile(tags.word), re.compile(tags.block)
    unharmed = (
        words.findall(before.marked) == words.findall(parsed)
        and blocks.findall(parsed) == blocks.findall(made)
        and _STYLE_ATTRIBUTE.sub("", parsed) == _STYLE_ATTRIBUTE.sub("", made)
    )
    if not unharmed:
        return document
    made = _NOT_NOW_MADE.sub("", made)
    if words.search(document):
        after = _Markup(made, tags)
        if not after.certain or before.places() != after.places():
            return document
    doctype = _DOCTYPE.match(document)
    if doctype:
        # The parser forgets which one it was, and a mail program's layout depends on it.
        made = doctype[1] + "\n" + made.removeprefix("<!DOCTYPE html>")
    return made


def with_preheader(document: str, preheader: str) -> str:
    """The document with the preheader hidden at the top of its body."""
    block = f'<div style="{_HIDDEN}">{html.escape(preheader)}{_FILLER}</div>'
    start = _BODY_START.search(document)
    at = start.end() if start else 0
    return document[:at] + block + document[at:]


def with_footer(document: str, footer: str) -> str:
    """The document with the footer as the last thing in its body."""
    ends = list(_BODY_END.finditer(document))
    at = ends[-1].start() if ends else len(document)
    return document[:at] + footer + document[at:]


class _Markup:
    """The tags of an HTML document, if they can be told for certain.

    ``certain`` is false for what a parser might read in another way, and for what would cost
    it too much: then nothing else here means anything.
    """

    def __init__(self, document: str, tags: MergeTags) -> None:
        self.certain = False
        #: The CSS of the style elements.
        self.sheets = ""
        #: The document, with style sheets for some media only marked as not to be inlined.
        self.marked = document
        # Tags between hidden words: names, closing ones with a slash.
        self._runs: list[list[str]] = [[]]
        # The runs after which a block word stands.
        self._blocks: list[int] = []
        self._block = re.compile(tags.block)
        self._word = re.compile(tags.word)
        self._show = tags.show
        self._ifs = 0
        self.certain = self._read(document)

    def places(self) -> tuple[list[list[str]], list[list[str]]]:
        """Where the hidden words are: what opens between them (one that was moved out of a table
        is before other tags), and what ``{% if %}`` leaves open and closed."""
        opened = [[tag for tag in run if tag[0] != "/"] for run in self._runs]
        between = [
            _effect(chain.from_iterable(self._runs[start + 1 : end + 1]))
            for start, end in pairwise([-1, *self._blocks, len(self._runs) - 1])
        ]
        return opened, between

    def _read(self, document: str) -> bool:
        doctype = _DOCTYPE.match(document)
        at = upto = doctype.end() if doctype else 0
        open_: list[tuple[str, int]] = []
        tags = repeated = most_repeated = 0
        marks: list[int] = []
        while start := _MARKUP_START.search(document, at):
            found = _MARKUP.match(document, start.start())
            if not found:
                return False
            self._text(document[upto : found.start()])
            at = upto = found.end()
            if found["name"] is None:
                if "--!>" in found["comment"]:
                    return False
                self._text(found["comment"])
                continue
            name, rest = found["name"].lower(), found["rest"]
            if name in _UNCERTAIN or self._word.search(name):
                return False
            if self._word.search(rest) and not self._attributes_certain(rest):
                return False
            if name not in VOID and name not in _IMPLIED:
                self._runs[-1].append(f"/{name}" if found["close"] else name)
            tags += 1
            cost = len(found[0]) + 30 if name in _FORMATTING else 0
            if found["close"]:
                if open_ and open_[-1][0] == name:
                    repeated -= open_.pop()[1]
                continue
            if name in _RAW_TEXT:
                end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(document, at)
                if not end:
                    return False
                text = document[at : end.start()]
                if name == "script" and "<!--" in text:
                    return False
                if name == "style":
                    # Rules that only some get can't be inlined for all.
                    if self._block.search(text) or self._ifs:
                        return False
                    if _MEDIA.search(rest):
                        marks.append(found.end("name"))
                    else:
                        self.sheets += text
                else:
                    self._text(text)
                at = upto = end.start()
            # <p> and <li> end one that was left open.
            left_open = name in ("p", "li") and open_ and open_[-1][0] == name
            if name not in VOID and not left_open:
                open_.append((name, cost))
                repeated += cost
                most_repeated = max(most_repeated, repeated)
                if len(open_) > MAX_INLINE_DEPTH:
                    return False
        self._text(document[upto:])
        ends = [0, *marks, len(document)]
        self.marked = _NOT_NOW.join(document[start:end] for start, end in pairwise(ends))
        return most_repeated * tags <= _MAX_REPEATED

    def _text(self, text: str) -> None:
        """Note the words between two tags."""
        for word in self._word.findall(text):
            if self._block.fullmatch(word):
                self._blocks.append(len(self._runs) - 1)
                name = self._show(word).strip("{% ").partition(" ")[0]
                self._ifs += {"if": 1, "endif": -1}.get(name, 0)
            self._runs.append([])

    def _attributes_certain(self, rest: str) -> bool:
        """Whether words are inside of values, and decide neither on rules nor on their order."""
        if self._word.search(_ATTRIBUTE_VALUE.sub("=", rest)):
            return False
        for name, value in _ATTRIBUTE.findall(rest):
            if name.lower() in ("class", "id") and self._word.search(value):
                return False
            # Not in quotation marks, the value would end elsewhere without the {% if %}.
            if (name.lower() == "style" or value[0] not in "\"'") and self._block.search(value):
                return False
        return True


def _effect(run: Iterable[str]) -> list[str]:
    """The closing and opening tags that have no partner among these."""
    left: list[str] = []
    for tag in run:
        if left and tag == f"/{left[-1]}":
            left.pop()
        else:
            left.append(tag)
    return left


def _too_much(sheets: str, parsed: str) -> bool:
    """Whether style sheets would take long to apply or grow the document beyond measure."""
    rules = sum(sheets.count(sign) for sign in ":{,")
    elements = parsed.count("<")
    # Each declaration is compared with those that its element already has.
    if rules * (rules * elements + parsed.count(":")) > _MAX_DECLARED:
        return True
    if len(sheets) * elements > _MAX_COPIED:
        return True
    # These look at every sibling of every sibling.
    return elements > 4000 and bool(re.search(r"~(?!=)|:has\(", sheets))
