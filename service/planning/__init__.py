"""The estimators: pure functions over frozen values, standard library and NumPy only.

Nothing here reads a clock, a file, a setting or a database; whatever a formula needs comes in as an
argument, in the unit that its name states. The modules follow the physics in the order in which a
question walks through them: precision, architecture, parallelism, memory and operators, training or
inference, power, carbon and water, cost.
"""

METHOD_VERSION = "2026.7"
"""Names the set of formulas; every answer carries it, and a change of any formula changes it."""
