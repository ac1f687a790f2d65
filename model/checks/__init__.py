"""Measurements of a system: against its reference, and against itself.

A check returns measured values and never says whether they are good: the limits
stand in the contract, and pass or fail exists only in SQL.
"""
