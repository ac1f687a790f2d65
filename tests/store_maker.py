"""A made-up store: small enough to build in milliseconds, shaped like a real one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warehouse.runs import RunFinish, RunStart, StageLink, utc_text
from warehouse.store import Execution, Store

SECOND_NS = 1_000_000_000


@dataclasses.dataclass
class StoreMaker:
    """Writes executions and runs into a store, one second after another."""

    store: Store
    clock_ns: int = 1_790_000_000 * SECOND_NS
    executions: dict[str, Execution] = dataclasses.field(default_factory=dict)

    def now(self) -> str:
        self.clock_ns += SECOND_NS
        return utc_text(self.clock_ns)

    def execute(
        self,
        stage: str,
        records: Sequence[Any],
        *,
        key: str = "key",
        components: dict[str, str] | None = None,
        artifacts: Sequence[Path] = (),
        reason: str = "it was never executed",
        host: str = "host",
    ) -> Execution:
        execution = self.store.commit(
            stage=stage,
            key=key,
            components=components or {"stage:name": stage},
            artifacts=[self.store.put_artifact(path) for path in artifacts],
            records=records,
            reason=reason,
            started_at=self.now(),
            finished_at=self.now(),
            host=host,
        )
        self.executions[stage] = execution
        return execution

    def run(
        self,
        run_id: str,
        *,
        state: str = "executed",
        preset: str = "fixture",
        is_declared: bool = True,
        system: str = "system-1",
        is_finished: bool = True,
        data: str = "d",
        configuration: dict[str, Any] | None = None,
        flow: str = "qualify",
        status: str = "completed",
        message: str = "",
        times: dict[str, int] | None = None,
        parts: dict[str, int] | None = None,
        reason: str = "it was never executed",
        implementation: str = "",
    ) -> RunStart:
        start = RunStart(
            run_id=run_id,
            flow=flow,
            components={
                "system": system,
                "configuration": preset,
                "data": data,
                **({"implementation": implementation} if implementation else {}),
            },
            preset=preset,
            is_declared=is_declared,
            configuration=configuration or {"train": {"updates": 300}},
            started_at=self.now(),
            host="host",
            process_id=1,
        )
        self.store.start_run(start)
        if is_finished:
            links = tuple(
                StageLink(
                    stage=execution.stage,
                    key=execution.key,
                    nonce=execution.nonce,
                    state=state,  # type: ignore[arg-type]
                    reason=reason if state == "executed" else "",
                    duration_ns=SECOND_NS,
                    **(parts or {}),
                )
                for execution in self.executions.values()
            )
            self.store.finish_run(
                RunFinish(
                    run_id=run_id,
                    status=status,  # type: ignore[arg-type]
                    message=message,
                    finished_at=self.now(),
                    links=links,
                    **(times or {}),
                )
            )
        return start
