"""Numbers, tables and charts as readers see them, for pages and reports."""
