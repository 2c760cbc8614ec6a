"""Estimators: pure functions over immutable values, with the standard library and NumPy only.

No function reads a clock, a file, a setting or a database; every input of a formula is an argument, in the
unit that its name states. A room imports only from those before it: parallelism and software, hardware,
models, operators, memory, inference, training, reliability, tariff, energy, and then cost, scheduling and
search.
"""

METHOD_VERSION = "2026.14"
"""Version of the set of formulas; every answer carries it, and a change of any formula changes it."""
