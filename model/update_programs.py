"""How an update is made, by the name that a request has for it."""

from collections.abc import Mapping
from typing import Any

from model.collective_update import CollectiveUpdate
from model.data_parallel import SplitUpdate, WholeUpdate
from model.sharded_update import ShardedUpdate

PROGRAMS: Mapping[str, Any] = {
    "split": SplitUpdate,
    "collective": CollectiveUpdate,
    "sharded": ShardedUpdate,
    "whole": WholeUpdate,
}
