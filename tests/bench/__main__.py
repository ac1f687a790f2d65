"""Measures what the workflow costs: `make bench`, one run, nothing judged.

    make bench ARGS="--preset prose --manifest tests/data/.../manifest.json"

Each pair that is compared runs under equal conditions: a Prefect server that already
runs, and an empty compilation cache of its own for each first run. Results go to
`bench-results/` as JSON. Times on shared cores vary by a tenth or more.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.local_server import LocalServer
from tests.bench.measure import BenchFailed, Measured, measure, peak_of_process

REVIEWS = 5
QUICK_COMMANDS = {
    "review": ["review"],
    "sql": ["sql", "select verdict, count(*) from verdicts group by all order by all"],
    "runs": ["runs"],
    "help": ["--help"],
}
TIME_QUERY = (
    "select stage, round(program_seconds, 2) as program_seconds, "
    "round(around_seconds, 2) as around_seconds from stage_durations"
)
OVERHEAD_QUERY = (
    "select evidence_share as evidence_of_run_ratio from run_overhead "
    "order by started_at limit 1"
)
LIMITS = {"evidence_of_run_ratio": 0.05, "reused_run_work_seconds": 5.0}
"""What a figure may be at most on two idle cores with the preset fixture."""
MEMORY_QUERY = (
    "select program, label, peak_memory_bytes from program_memory "
    "where peak_memory_bytes is not null order by peak_memory_bytes desc limit 1"
)


class Bench:
    """One run of the measurements, in a private folder."""

    def __init__(
        self, folder: Path, preset: str, manifest: str | None, settings: list[str]
    ) -> None:
        """Nothing is started yet."""
        self.folder = folder
        self.preset = preset
        self.manifest = manifest
        self.settings = settings
        self.results: dict[str, Any] = {
            "measured_at": datetime.datetime.now(datetime.UTC).isoformat(),
            "machine": f"{platform.machine()} with {os.cpu_count()} cores",
            "preset": preset,
            "settings": settings,
            # Another process on the machine moves every figure, so say so.
            "load_before": os.getloadavg()[0],
        }

    def environment(self, cache: str, api_url: str | None) -> dict[str, str]:
        """Returns the environment of a measured command."""
        changes = {
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / cache),
            "HARNESS_ROOT": str(self.folder / "evidence"),
        }
        if api_url:
            changes["PREFECT_API_URL"] = api_url
        return {**os.environ, **changes}

    def harness(self, *arguments: str, api_url: str | None = None) -> Measured:
        """Measures one `harness` command against the bench's own store."""
        command = [sys.executable, "-m", "flows.command_line", *arguments]
        # A review ends with 1 when a claim is unmet, and took its time all the same.
        exit_codes = (0, 1) if arguments[0] == "review" else (0,)
        return measure(command, self.environment("flow-cache", api_url), exit_codes)

    def run_arguments(self) -> list[str]:
        """Returns the arguments of the measured `harness run`."""
        chosen = ["--manifest", self.manifest] if self.manifest else []
        settings = [part for text in self.settings for part in ("--set", text)]
        return ["run", "--preset", self.preset, *chosen, *settings]

    def workflow(self, api_url: str) -> None:
        """Measures the first run against the same programs without workflow."""
        say("first run of the flow, empty caches")
        first = self.harness(*self.run_arguments(), api_url=api_url)
        say("the same programs one after another, empty caches")
        asked = {
            "preset_name": self.preset,
            "overrides": self.settings,
            "manifest": self.manifest,
        }
        plain = measure(
            [
                *(sys.executable, "-m", "tests.bench.plain_dag"),
                *(str(self.folder / "plain"), json.dumps(asked)),
            ],
            self.environment("plain-cache", api_url),
        )
        seconds = json.loads(plain.output.splitlines()[-1])["seconds"]
        self.results["first_run_seconds"] = first.seconds
        self.results["plain_programs_seconds"] = seconds
        self.results["first_run_ratio"] = first.seconds / seconds
        answer = self.harness("sql", OVERHEAD_QUERY, "--format", "json").output
        self.results |= json.loads(answer)[0]
        self.results["flow_process_peak_bytes"] = first.peak_memory_bytes

    def reuse(self, api_url: str) -> None:
        """Measures a run that reuses everything against a flow of empty tasks."""
        say("a run that reuses everything, and a flow of nine empty tasks")
        reused = self.harness(*self.run_arguments(), api_url=api_url)
        empty = measure(
            [sys.executable, "-m", "tests.bench.empty_flow"],
            self.environment("flow-cache", api_url),
        )
        self.results["reused_run_seconds"] = reused.seconds
        self.results["reused_run_work_seconds"] = reused.work_seconds
        self.results["empty_flow_seconds"] = empty.seconds
        self.results["reuse_beyond_empty_seconds"] = reused.seconds - empty.seconds

    def own_server(self) -> None:
        """Measures a reused run that has to start a server of its own."""
        say("a run that reuses everything and starts its own server")
        self.results["reused_run_with_server_seconds"] = self.harness(
            *self.run_arguments()
        ).seconds

    def looking(self) -> None:
        """Measures the commands that only look, and asks the store where time went."""
        say("commands that only look")
        for name, arguments in QUICK_COMMANDS.items():
            times = [self.harness(*arguments).seconds for _ in range(REVIEWS)]
            self.results[f"{name}_median_seconds"] = statistics.median(times)
        for name, query in (("stages", TIME_QUERY), ("memory", MEMORY_QUERY)):
            answer = self.harness("sql", query, "--format", "json").output
            self.results[name] = json.loads(answer)


def say(text: str) -> None:
    """Says on standard error what is measured now."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def running_server(results: dict[str, Any]) -> Iterator[str]:
    """Yields the address of a server, and notes its peak memory at the end."""
    server = LocalServer()
    try:
        yield server.api_url()
    finally:
        results["server_peak_bytes"] = peak_of_process(server._process.pid)
        server.stop()


def table(results: dict[str, Any]) -> str:
    """Returns the results for people."""
    machine = f"{results['machine']}, load {results['load_before']:.1f} before"
    lines = [f"machine: {machine}; preset {results['preset']}", ""]
    for name, value in results.items():
        if name.endswith("_seconds"):
            lines.append(f"{name:34} {value:8.2f} s{against_limit(name, value)}")
        elif name.endswith("_bytes") and value is not None:
            lines.append(f"{name:34} {value / 2**20:8.0f} MiB")
        elif name.endswith("_ratio"):
            lines.append(f"{name:34} {value:8.3f}{against_limit(name, value)}")
    for program in results.get("memory", []):
        peak = program["peak_memory_bytes"] / 2**20
        lines.append(
            f"{'largest program_peak':34} {peak:8.0f} MiB {program['program']}"
        )
    lines += ["", f"{'stage':22} {'programs':>9} {'around':>10}"]
    lines += [
        f"{row['stage']:22} {row['program_seconds']:7.2f} s "
        f"{row['around_seconds']:8.2f} s"
        for row in results.get("stages", [])
    ]
    return "\n".join(lines)


def against_limit(name: str, value: float) -> str:
    """Returns how a figure stands to its limit; "" for one without a limit."""
    if name not in LIMITS:
        return ""
    return f"   {'within' if value <= LIMITS[name] else 'ABOVE'} {LIMITS[name]:g}"


def main() -> int:
    """Measures, prints a table and writes the JSON file."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--preset", default="fixture")
    parser.add_argument("--manifest", help="corpus of one's own (a JSON file)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="text-harness-bench-"))
    bench = Bench(folder, options.preset, options.manifest, options.set)
    try:
        with running_server(bench.results) as api_url:
            bench.workflow(api_url)
            bench.reuse(api_url)
        bench.own_server()
        bench.looking()
    except BenchFailed as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(bench.results))
    stamp = bench.results["measured_at"][:19].replace(":", "")
    file = Path("bench-results", f"{stamp}-{options.preset}.json")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(bench.results, indent=1) + "\n")
    say(f"written to {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
