"""Prices that ship: made from a folder of dated prices, and the page that says how old they are."""
