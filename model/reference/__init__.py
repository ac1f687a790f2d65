"""The same computations once more, in NumPy float64 or plain loops.

A file here checks the file of the same name in ``model/``. It imports no JAX and
nothing of ``model/`` but the configuration, so that one mistake cannot hide in both.
"""
