"""The report of a quote: sections of figures, charts and tables, on a page that stands alone and prints."""
