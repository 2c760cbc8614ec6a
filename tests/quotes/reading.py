"""Quotes as documents, without a database, and pages as parsers read them."""

import json
from functools import cache
from html.parser import HTMLParser

from service.quotes.documents import build_row, to_detail
from service.quotes.snapshot import QUESTIONS, QuoteSubject, build_quote, is_owning_devices, project_questions
from tests.asking import shipped, usd

TRAINED = {
    "model": {"source": "catalog", "id": "llama-2-70b"},
    "workload": {
        "kind": "training",
        "total_tokens": 2_000_000_000_000,
        "global_batch_size": 1024,
    },
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1024},
    "rental": {"price_per_device_hour": usd("3")},
    "purchase": {"price_per_device": usd("30000")},
    "site": {
        "pue": 1.12,
        "electricity": {"price_per_kwh": usd("0.12")},
        "carbon_intensity_kg_co2e_per_kwh": 0.429,
    },
}
SERVED = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "inference",
        "request_rate_per_second": 2.0,
        "service_levels": {"time_to_first_token_seconds": 1.0},
        "horizon": {"duration_seconds": 7 * 86400.0},
    },
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}},
    "rental": {"price_per_device_hour": usd("3")},
    "site": {
        "pue": 1.2,
        "electricity": {"tariff_id": "pge-e20-primary-2018"},
        "time_zone": "America/Los_Angeles",
    },
    "load_profile": {"include_intervals": True},
    "starts_at": "2026-01-28T08:00:00Z",
}
BARE = {
    "model": {"source": "parameter_count", "parameter_count": 70_000_000_000},
    "workload": {"kind": "training"},
}
UNKNOWN = {
    "model": BARE["model"],
    "workload": {"kind": "training", "total_tokens": 1_000_000_000},
    "cluster": {
        "accelerator": {
            "source": "specification",
            "specification": {"name": "a device", "peak_flops_per_second": {"bf16": 1e15}},
        },
        "accelerator_count": 8,
    },
}


@cache
def _quoted(operation, request, terms):
    name = operation.replace("-", "_")
    question = QUESTIONS[name].model_validate_json(request)
    asked = QuoteSubject(operation, "A run", project_questions(name, question), is_owning_devices(question))
    frozen = build_quote(asked._replace(**dict(terms)), shipped(), lambda sources: [{}] * len(sources))
    return to_detail(build_row(frozen, "default", "token:alice", days=30))


def quoted(request, operation="utility-bill", **terms):
    """A quote of a question, as its document says it."""
    return json.loads(json.dumps(_quoted(operation, json.dumps(request), tuple(terms.items())), default=str))


VOID = frozenset({"meta", "br", "input", "hr", "link"})
CLOSED = frozenset({"line", "rect", "circle", "polyline", "polygon"})


class Page(HTMLParser):
    """What a page says: tables by caption, charts by title, ids; refuses tags that do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.tables, self.charts, self.ids, self.tags = {}, {}, [], []
        self._rows, self._chart = [], None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert len(given) == len(attributes)
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.append(given["id"])
        if tag in {"table", "tr", "th", "td", "caption"}:
            self._begin_table(tag)
        if tag == "svg" or self._chart is not None:
            self._begin_chart(tag, given)
        if tag not in VOID | CLOSED:
            self.open.append(tag)

    def _begin_table(self, tag):
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag == "caption":
            self._caption = ""
        else:
            self._rows[-1].append("")

    def _begin_chart(self, tag, given):
        if tag == "svg":
            self._chart = {"marks": [], "texts": [], "text_marks": [], "given": given}
        elif tag == "title":
            self._title = ""
        elif tag == "text":
            self._chart["texts"].append((given["class"], ""))
            self._chart["text_marks"].append(given)
        elif tag in CLOSED:
            self._chart["marks"].append((tag, given))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        if tag in CLOSED:
            return
        assert self.open.pop() == tag
        if tag == "table":
            self.tables.setdefault(self._caption, self._rows)
        if tag == "svg":
            self.charts[self._title] = self._chart
            self._chart = None

    def handle_data(self, data):
        within = self.open[-1:] and self.open[-1]
        if within == "caption":
            self._caption += data
        if within == "title" and self._chart is not None:
            self._title += data
        if within == "text":
            kind, text = self._chart["texts"][-1]
            self._chart["texts"][-1] = (kind, text + data)
        if {"td", "th"} & set(self.open):
            self._rows[-1][-1] += data

    def column(self, caption, place):
        """A column of a table without its head."""
        return [row[place] for row in self.tables[caption][1:]]

    def blocks(self, title):
        """Left end and width of each bar of a chart, the total last."""
        return [
            (float(given["x"]), float(given["width"]))
            for tag, given in self.charts[title]["marks"]
            if tag == "rect" and given["class"].startswith("block")
        ]

    def texts(self, title, kind):
        """Texts of a kind in a chart."""
        return [text for found, text in self.charts[title]["texts"] if found == kind]
