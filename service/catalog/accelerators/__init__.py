"""Accelerators as sold."""
