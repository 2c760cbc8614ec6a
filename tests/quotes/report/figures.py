"""What a report says and draws, read as somebody does who knows neither its code nor its answer."""

import math
import re
from collections import defaultdict
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree as ET

SPACE, TIMES = "\N{NO-BREAK SPACE}", "\N{MULTIPLICATION SIGN}"
UNITS = {
    **{unit: ("bytes", 1024**power) for power, unit in enumerate(["B", "KiB", "MiB", "GiB", "TiB", "PiB"])},
    "GB": ("bytes", 1e9),
    "µs": ("seconds", 1e-6),
    "ms": ("seconds", 1e-3),
    "s": ("seconds", 1),
    "min": ("seconds", 60),
    "h": ("seconds", 3600),
    "days": ("seconds", 86400),
    "Wh": ("kwh", 1e-3),
    "kWh": ("kwh", 1),
    "MWh": ("kwh", 1e3),
    "GWh": ("kwh", 1e6),
    "TWh": ("kwh", 1e9),
    "W": ("kw", 1e-3),
    "kW": ("kw", 1),
    "MW": ("kw", 1e3),
    "GW": ("kw", 1e6),
    "J": ("joules", 1),
    "kJ": ("joules", 1e3),
    "g CO₂e": ("kg_co2e", 1e-3),
    "kg CO₂e": ("kg_co2e", 1),
    "t CO₂e": ("kg_co2e", 1e3),
    "L": ("liters", 1),
    "m³": ("liters", 1e3),
    "FLOP": ("flops", 1),
    "FLOP/s": ("flops_per_second", 1),
    "GFLOP/s": ("flops_per_second", 1e9),
    "TFLOP/s": ("flops_per_second", 1e12),
    "PFLOP/s": ("flops_per_second", 1e15),
    "GB/s": ("bytes_per_second", 1e9),
    "%": ("share", 0.01),
}
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_NUMBER = rf"(?P<number>-?[0-9][0-9,]*(?:\.[0-9]+)?)(?:{SPACE}{TIMES}{SPACE}10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_FIGURE = re.compile(rf"{_NUMBER}(?:{SPACE}(?P<unit>(?:{_UNIT})(?![A-Za-z0-9/])|[A-Z]{{3}}\b))?")


class PrintedFigure(NamedTuple):
    """A figure in the unit of the document, and half a unit of its last place."""

    kind: str
    value: Decimal
    precision: Decimal
    text: str


def figures_in(text, unit=""):
    """Figures of a text; those without a unit are of that of their column."""
    found = []
    for match in _FIGURE.finditer(text):
        named = match["unit"] or unit
        kind, factor = UNITS.get(named, (named or "plain", 1))
        power = Decimal(10) ** int((match["power"] or "0").translate(_RAISED))
        places = len(match["number"].partition(".")[2])
        scale = power * Decimal(str(factor))
        value = Decimal(match["number"].replace(",", "")) * scale
        found.append(PrintedFigure(kind, value, Decimal(10) ** -places * scale / 2, text))
    return found


class Cell(NamedTuple):
    """A cell of numbers: its table, the name of its row and column, and its text."""

    table: str
    row: str
    column: str
    text: str

    @property
    def unit(self):
        """The unit that the head of the column names."""
        named = self.column.rpartition(", ")[2]
        return named if named in UNITS else ""


class Cells(HTMLParser):
    """Every cell of numbers of a report, and its running text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.cells, self.prose = [], []
        self._tag, self._caption, self._head, self._row, self._text = "", "", [], [], ""
        self._is_number = False
        self.feed(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL).partition("<body>")[2])

    def handle_starttag(self, tag, attributes):
        if tag in {"caption", "th", "td", "p", "li", "summary"}:
            self._text, self._is_number = "", dict(attributes).get("class") == "number"
        if tag == "table":
            self._head = []
        if tag == "tr":
            self._row = []
        if tag == "span":
            self._text += " | "

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self._caption = self._text
        if tag == "thead":
            self._head = self._row
        if tag in {"th", "td"}:
            self._row.append(self._text)
            if tag == "td" and self._is_number:
                column = self._head[len(self._row) - 1]
                self.cells.append(Cell(self._caption, self._row[0], column, self._text))
        if tag == "p":
            self.prose.append(self._text)


class DrawnBar(NamedTuple):
    """A row of a chart of bars, in the units of its axis as its ticks say them."""

    name: str
    text: str
    start: float
    end: float
    low: float | None
    high: float | None
    is_total: bool
    is_saved: bool


class Chart:
    """A chart, read by its ticks."""

    def __init__(self, source):
        self.root = ET.fromstring(source)  # noqa: S314  # of our own page
        self.title = self.root.findtext("title")
        self.description = self.root.findtext("desc")
        self.width = float(self.root.get("viewBox").split()[2])
        self.height = float(self.root.get("viewBox").split()[3])

    def of(self, tag, kind=None):
        """Elements of a tag, and of a class."""
        return [each for each in self.root.iter(tag) if kind is None or each.get("class").split()[0] == kind]

    def texts(self, kind):
        """Texts of a class with their places."""
        return [(float(t.get("x")), float(t.get("y")), t.text or "") for t in self.of("text", kind)]

    def axis(self, *, is_log=False):
        """What a place across stands for, by two ticks on their lines."""
        lines = sorted({float(line.get("x1")) for line in self.of("line", "grid") if _is_upright(line)})
        low = max(float(line.get("y2")) for line in self.of("line", "grid"))
        ticks = sorted((x, _number(text)) for x, y, text in self.texts("tick") if _is_tick(y, low, text))
        assert len(lines) == len(ticks)
        return _reader(lines, [value for _, value in ticks], is_log=is_log)

    def plane(self, *, is_log=True):
        """What a place across and one up stand for."""
        lines = self.of("line", "grid")
        xs = sorted({float(line.get("x1")) for line in lines if _is_upright(line)})
        ys = sorted({float(line.get("y1")) for line in lines if not _is_upright(line)}, reverse=True)
        low = max(ys)
        ticks = [(x, y, text) for x, y, text in self.texts("tick") if re.fullmatch(r"[0-9.,e+-]+", text)]
        across = sorted((x, _number(text)) for x, y, text in ticks if _is_tick(y, low + 6, text))
        up = sorted((-y, _number(text)) for x, y, text in ticks if not _is_tick(y, low + 6, text))
        read = [
            _reader(xs, [v for _, v in across], is_log=is_log),
            _reader(ys, [v for _, v in up], is_log=is_log),
        ]
        return tuple(read)

    def unit(self):
        """What the axis says of its unit, and how many of the document's that is."""
        name = next(text for _, _, text in self.texts("tick") if not re.fullmatch(r"-?[0-9.,e+-]+", text))
        if name in UNITS:
            return UNITS[name]
        size, _, code = name.rpartition(" ")
        return code, float({"": 1, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}[size])

    def bars(self, axis):
        """The rows of a chart of bars, from top to bottom."""
        names = sorted((y, text) for _, y, text in self.texts("name"))
        figures = {y: text for _, y, text in self.texts("figure")}
        whiskers = defaultdict(list)
        for line in self.of("line", "whisker"):
            if line.get("y1") == line.get("y2"):
                whiskers[float(line.get("y1"))] = [axis(float(line.get(end))) for end in ("x1", "x2")]
        blocks = {float(r.get("y")): r for r in self.of("rect", "block")}
        rows = []
        for y, name in names:
            block = next((b for at, b in blocks.items() if y < at < y + 12), None)
            ends = next((w for at, w in whiskers.items() if y < at < y + 20), [None, None])
            if block is not None:
                left, width = float(block.get("x")), float(block.get("width"))
                kind = block.get("class").split()
                rows.append(
                    DrawnBar(
                        name,
                        figures[y],
                        axis(left),
                        axis(left + width),
                        *ends,
                        "total" in kind,
                        "saved" in kind,
                    )
                )
        return rows


def _is_upright(line):
    return line.get("x1") == line.get("x2")


def _number(text):
    return float(text.replace(",", ""))


def _is_tick(y, low, text):
    return low < y < low + 20 and re.fullmatch(r"-?[0-9.,e+-]+", text)


def _reader(places, values, *, is_log):
    """A function from places to values through the first and the last tick, which holds for all others."""
    to, back = (math.log10, lambda value: 10**value) if is_log else (float, float)
    (x1, v1), (x2, v2) = (places[0], to(values[0])), (places[-1], to(values[-1]))

    def read(x):
        return back(v1 + (x - x1) / (x2 - x1) * (v2 - v1))

    assert all(before < after for before, after in pairwise(values))
    for x, value in zip(places, values, strict=True):
        assert abs(x - x1 - (to(value) - v1) / (v2 - v1) * (x2 - x1)) <= 0.2  # of a unit of the drawing
    return read


def charts_of(text):
    """Charts of a page by title."""
    charts = [Chart(source) for source in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)]
    return {chart.title: chart for chart in charts}
