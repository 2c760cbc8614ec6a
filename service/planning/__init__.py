"""The estimators: pure functions over frozen values, standard library and NumPy only.

Nothing here reads a clock, a file, a setting or a database; whatever a formula needs comes in as an
argument, in the unit that its name states. A room imports only from those before it: software and
parallelism, hardware, models, operators, memory, inference, training, reliability, tariff, energy, and then
cost, scheduling and search.
"""

METHOD_VERSION = "2026.7"
"""Names the set of formulas; every answer carries it, and a change of any formula changes it."""
