"""The claims that are required, as data: the only place where a limit stands.

`contract/task_N.toml`, with `task_N_*.toml` beside it, lists every claim of review task
N with its requirements:

    [[claim]]
    id = "1.3"
    statement = "Valid targets of a document are its bytes plus one."

    [[claim.requirement]]
    stage = "tokenize_corpus"       # the stage whose evidence it is judged on
    measure = "valid_targets_beyond_bytes_plus_one"
    relation = "equal"
    limit = 0
    unit = "targets"
    cases = ["train", "validation", "heldout"]
    required_count = 1
    presets = ["fixture", "prose"]
    scope = "any"
    sampling = ""
    reason = "An integer identity; no tolerance."

relation     equal, at_most, at_least, above   a number of `measurements` and the limit
             reported                          a number is there and finite
             identical, different              the two sides of a row of `comparisons`
             refused                           a row of `refusals` with the right code
cases        each must be there: a row whose case_name is it, or begins with it and "/";
             an empty list takes rows of any case. A row of a case that no requirement
             of its measure lists has to keep all of them.
required_count  rows that each case needs (or all rows together, without cases)
presets      where it is required; every preset when left out
scope        "declared" when it holds only for the configuration and corpus exactly as
             the preset declares them, such as a literal count; "whole" when the
             samples of the checks must be too, of which `harness check` takes fewer;
             otherwise "any"
sampling     the recorded rule, when a preset samples the cases
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from warehouse.errors import ContractError

FOLDER = Path(__file__).parent / "contract"
"""Where the contract lies."""

NUMERIC_RELATIONS = frozenset({"equal", "at_most", "at_least", "above"})
"""Relations that hold a number against a limit."""
RELATIONS = NUMERIC_RELATIONS | {"reported", "identical", "different", "refused"}
"""Every relation that the verdict views know."""
_CLAIM_ID = re.compile(r"[1-9]\.(0|[1-9][0-9]?)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Requirement:
    """One measure that a claim is judged on, or has to report."""

    claim: str
    """Id of the claim."""
    stage: str
    """Stage whose evidence it is judged on."""
    measure: str
    """Name of the measure, the same as in the rows."""
    relation: str
    """How value and limit must stand to each other; one of `RELATIONS`."""
    limit: int | float | None
    """The limit, in `unit`; None for relations that compare with none."""
    unit: str
    """Unit of value and limit; empty for comparisons and refusals."""
    cases: tuple[str, ...]
    """Cases of which each must be there; empty for any."""
    required_count: int
    """Rows that each case needs."""
    presets: tuple[str, ...]
    """Presets it is required in; empty for all."""
    scope: Literal["any", "declared", "whole"]
    """Whether it needs the configuration and corpus exactly as declared."""
    sampling: str
    """The rule by which cases were sampled; empty when none was."""
    reason: str
    """Why this limit."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement that the system has to prove."""

    id: str
    """Review task and number, such as "1.3"."""
    statement: str
    """What is claimed, one sentence."""
    requirements: tuple[Requirement, ...]
    """What it is judged on; at least one."""

    @property
    def review_task(self) -> int:
        """The review task the claim belongs to."""
        return int(self.id.partition(".")[0])

    @property
    def number(self) -> int:
        """The number of the claim within its review task."""
        return int(self.id.partition(".")[2])


def read_contract(folder: Path = FOLDER) -> tuple[Claim, ...]:
    """Returns every claim of a contract folder, ordered by task and number.

    Raises:
        ContractError: a file is malformed, or two claims or requirements are the same.
    """
    claims = []
    for path in sorted(folder.glob("task_*.toml")):
        claims += read_claims(path)
    if not claims:
        raise ContractError(
            f"There is no contract: {str(folder)!r} has no task_*.toml."
        )
    _refuse_repeated("claim", (claim.id for claim in claims), folder)
    return tuple(sorted(claims, key=lambda claim: (claim.review_task, claim.number)))


def read_claims(path: Path) -> list[Claim]:
    """Returns the claims of one file of the contract, in the order of the file.

    Raises:
        ContractError: the file is not TOML, or a field is missing, unknown or wrong.
    """
    try:
        return list(_claims(path.name, path.read_text(encoding="utf-8")))
    except ContractError:
        raise
    except (OSError, ValueError) as error:
        raise ContractError(
            f"The contract {path.name} cannot be read: {error}."
        ) from error


@functools.lru_cache(maxsize=32)
def _claims(file: str, text: str) -> tuple[Claim, ...]:
    """Returns the claims of a text; to parse one takes longer than to read its file."""
    document = tomllib.loads(text)
    _refuse_unknown(document, {"claim"}, file)
    claims = tuple(_claim(file, entry) for entry in document.get("claim", []))
    for claim in claims:
        if Path(file).stem.split("_")[1] != str(claim.review_task):
            raise ContractError(f"{file} holds the claim {claim.id} of another task.")
    return claims


def _claim(where: str, entry: Mapping[str, Any]) -> Claim:
    claim_id = entry.get("id")
    if not isinstance(claim_id, str) or not _CLAIM_ID.fullmatch(claim_id):
        raise ContractError(
            f'{where}: a claim has the id {claim_id!r}, not like "1.3".'
        )
    where = f"{where}: claim {claim_id}"
    _refuse_unknown(entry, {"id", "statement", "requirement"}, where)
    requirements = tuple(
        _requirement(where, claim_id, item) for item in entry.get("requirement", [])
    )
    if not requirements:
        raise ContractError(f"{where} has no requirement, so nothing could prove it.")
    _refuse_repeated(
        "requirement",
        (
            f"{item.stage} {item.measure} {item.relation} {item.limit} {preset}"
            for item in requirements
            for preset in item.presets or ("every preset",)
        ),
        where,
    )
    return Claim(
        id=claim_id,
        statement=_text(where, entry, "statement"),
        requirements=requirements,
    )


def _requirement(where: str, claim_id: str, entry: Mapping[str, Any]) -> Requirement:
    where = f"{where}, measure {entry.get('measure')!r}"
    known = {field.name for field in dataclasses.fields(Requirement)} - {"claim"}
    _refuse_unknown(entry, known, where)
    relation = entry.get("relation")
    if relation not in RELATIONS:
        raise ContractError(
            f"{where}: relation is {relation!r}; allowed are {sorted(RELATIONS)}."
        )
    requirement = Requirement(
        claim=claim_id,
        stage=_name(where, entry, "stage"),
        measure=_name(where, entry, "measure"),
        relation=relation,
        limit=_limit(where, relation, entry.get("limit")),
        unit=entry.get("unit", ""),
        cases=_texts(where, entry, "cases"),
        required_count=entry.get("required_count", 1),
        presets=_texts(where, entry, "presets"),
        scope=entry.get("scope", "any"),
        sampling=entry.get("sampling", ""),
        reason=_text(where, entry, "reason"),
    )
    _check_rest(where, requirement)
    return requirement


def _check_rest(where: str, requirement: Requirement) -> None:
    count = requirement.required_count
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ContractError(f"{where}: required_count is {count!r}, not 1 or more.")
    if requirement.scope not in ("any", "declared", "whole"):
        raise ContractError(
            f"{where}: scope is {requirement.scope!r}, not any, declared or whole."
        )
    has_number = requirement.relation in NUMERIC_RELATIONS | {"reported"}
    if not isinstance(requirement.unit, str) or has_number != bool(requirement.unit):
        raise ContractError(
            f"{where}: unit is {requirement.unit!r}; a number needs one, a comparison "
            "or refusal has none."
        )
    if not isinstance(requirement.sampling, str):
        raise ContractError(f"{where}: sampling is {requirement.sampling!r}, not text.")


def _limit(where: str, relation: str, limit: Any) -> int | float | None:
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if relation not in NUMERIC_RELATIONS:
        if limit is not None:
            raise ContractError(f"{where}: {relation} compares with no limit.")
        return None
    if not is_number or not math.isfinite(limit):
        raise ContractError(f"{where}: limit is {limit!r}; it must be a finite number.")
    return limit


def _text(where: str, entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ContractError(f"{where}: {name} is {value!r}; it must be a sentence.")
    return value


def _name(where: str, entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ContractError(
            f"{where}: {name} is {value!r}; it must be like snake_case."
        )
    return value


def _texts(where: str, entry: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = entry.get(name, [])
    if not isinstance(values, list) or not all(
        isinstance(v, str) and v for v in values
    ):
        raise ContractError(
            f"{where}: {name} is {values!r}; it must be a list of texts."
        )
    _refuse_repeated(name, values, where)
    return tuple(values)


def _refuse_unknown(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise ContractError(
            f"{where}: unknown fields {unknown}; known: {sorted(known)}."
        )


def _refuse_repeated(what: str, names: Iterable[str], where: object) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ContractError(f"{where}: the {what} {name!r} stands there twice.")
        seen.add(name)
