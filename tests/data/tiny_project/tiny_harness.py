"""The real command line, with the tiny flow in place of the real one."""

import importlib
import sys
import types

import flows.runtime_fingerprint
from flows.command_line import main


def _tiny(name: str) -> object:
    return getattr(importlib.import_module("tiny_flow"), name)


# Resolved late: the command line loads Prefect only after its server is on its way.
module = types.ModuleType("flows.qualify")
module.__getattr__ = _tiny
sys.modules["flows.qualify"] = module
flows.runtime_fingerprint.PROGRAM = "tiny.programs.report_runtime"
main()
