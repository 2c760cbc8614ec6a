"""Report of a quote: sections of figures, charts and tables on a self-contained, printable page."""
