"""The tables: one frozen dataclass each, one sentence under each field.

A module added here is found by the loader; there is no list of names to extend. A
stage imports only the classes that it writes, so its source closure stays small.
"""
