"""Actuals: imported bills, compared with quotes."""
