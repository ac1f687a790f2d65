"""Puts a faulty component in the place of the right one, in this process alone."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warehouse import view_files

FIRST_PARTY = ("model.", "tasks.", "warehouse.", "flows.")


def swapped(name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Returns what replaces a function, or method, wherever a module holds it.

    Args:
        name: `package.module.function` or `package.module.Class.method`.
        make: Takes the original and returns what stands in its place.
    """

    def plant() -> None:
        module_name, _, attribute = name.rpartition(".")
        try:
            owner: Any = importlib.import_module(module_name)
        except ModuleNotFoundError:
            module_name, _, class_name = module_name.rpartition(".")
            owner = getattr(importlib.import_module(module_name), class_name)
        original = getattr(owner, attribute)
        other = make(original)
        setattr(owner, attribute, other)
        for held_name, module in list(sys.modules.items()):
            if not held_name.startswith(FIRST_PARTY):
                continue
            for own_name, value in list(vars(module).items()):
                if value is original:
                    setattr(module, own_name, other)

    return plant


def rewritten(view: str, *changes: tuple[str, str]) -> Callable[[], None]:
    """Returns what makes a view say something else.

    Args:
        view: Name of the view.
        changes: Text that it holds once, and what stands there instead.
    """

    def make(original: Callable[[Path], view_files.ViewFile]) -> Any:
        def read_view(path: Path) -> view_files.ViewFile:
            found = original(path)
            if found.name != view:
                return found
            sql = found.sql
            for right, wrong in changes:
                assert sql.count(right) == 1, f"{view} holds {right!r} not once"
                sql = sql.replace(right, wrong)
            return dataclasses.replace(found, sql=sql)

        return read_view

    def plant() -> None:
        swapped("warehouse.view_files.read_view", make)()
        view_files.read_views.cache_clear()

    return plant
