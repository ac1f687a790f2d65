"""The one error family of the warehouse; the command line shows `str(error)` alone."""


class WarehouseError(Exception):
    """Something the evidence needs is not as it must be; the text is one sentence."""


class StoreError(WarehouseError):
    """The store cannot be used: not a folder, not writable, full, or not readable."""


class NoExecution(WarehouseError, LookupError):
    """No intact committed execution exists for a key; the text says why."""


class NeverExecuted(NoExecution):
    """Nothing was ever committed under a key, so nothing is missing or damaged."""


class RecordError(WarehouseError, ValueError):
    """A row does not keep what its record class declares."""


class ContractError(WarehouseError, ValueError):
    """The contract files are malformed or contradict themselves."""


class ViewError(WarehouseError, ValueError):
    """The header of a view file does not say what its SQL does."""


class UnknownRun(WarehouseError, LookupError):
    """No run of the store has the id, prefix or name that was asked for."""


class BaselineRefused(WarehouseError, ValueError):
    """A run may not become a baseline; the text says which condition it breaks."""


class ComparisonRefused(WarehouseError, ValueError):
    """Two runs cannot be compared: one of them is not complete, or both are one."""


class QueryError(WarehouseError, ValueError):
    """A user's SQL was refused, failed, or went over its limits."""
