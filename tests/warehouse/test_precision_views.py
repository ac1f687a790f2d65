"""The table of policies, the lowered products and the noise, from made-up rows."""

import dataclasses

import pytest

from warehouse.records.claims import Measurement
from warehouse.records.inference import (
    CacheArray,
    Endpoint,
    LogitError,
    LoweredDot,
    PolicyArray,
    PrecisionPolicy,
)

MEASURED = {
    "heldout_nats_per_token": 1.5,
    "heldout_targets": 2,
    "largest_logit_error": 0.1,
    "changed_top_tokens": 1,
    "decode_ns": 40,
    "decode_rows": 32,
    "reached": "ran",
    "reason": None,
}
UNMEASURED = dict.fromkeys(MEASURED) | {
    "reached": "lowered",
    "reason": "not_supported",
}
TEXTS = (
    *("weights", "activations", "accumulation", "lowered_operands", "zero_point"),
    *("scale_granularity", "clipping", "calibration", "compiled_operands", "device"),
)
BYTES = {
    "weight_bytes": 10,
    "cache_bytes": 20,
    "optimizer_bytes": 30,
    "artifact_bytes": 50,
}


def policy(name: str, kind: str, **changes: object) -> PrecisionPolicy:
    fields: dict[str, object] = dict.fromkeys(TEXTS, "float32") | BYTES
    fields |= UNMEASURED if kind == "format" else MEASURED
    fields |= {"cache": "fp32", "detail": "observed", "logit_error_limit": 0.3}
    return PrecisionPolicy(policy=name, kind=kind, **{**fields, **changes})


def beneath(name: str, *, is_measured: bool = True) -> list:
    """The arrays and single targets that the figures of a made-up policy count."""
    rows: list = [
        PolicyArray(
            policy=name, part=part, array_name=array, dtype="f", shape="[]",
            array_bytes=size,
        )
        for part, array, size in (
            ("weights", "a", 4), ("weights", "a/scales", 6), ("optimizer", "m", 30)
        )
    ]  # fmt: skip
    targets = ((1.0, 0.1, True), (2.0, 0.05, False)) if is_measured else ()
    return rows + [
        LogitError(
            release_policy=name, document_id="d", position=number,
            largest_error=largest, mean_error=0.0, divergence_nats=0.0,
            loss_nats=loss, is_top_changed=changed, margin=0.0,
        )
        for number, (loss, largest, changed) in enumerate(targets)
    ]  # fmt: skip


CACHE = CacheArray(
    cache_policy="fp32", array_name="keys", dtype="f", shape="[]", array_bytes=20
)


def endpoint(kind: str, size: int) -> Endpoint:
    texts = (
        *("artifact", "sha256", "platforms", "stablehlo_sha256", "inputs", "outputs"),
        "matrix_products",
    )
    return Endpoint(
        endpoint=kind,
        release_policy="fp32",
        artifact_bytes=size,
        calling_convention_version=10,
        float32_operations="add,exponential",
        **dict.fromkeys(texts, "x"),
    )


def dot(name: str, place: int, operand: str, accumulator: str) -> LoweredDot:
    return LoweredDot(
        endpoint="decode",
        release_policy="fp32",
        platform="cpu",
        place=place,
        dot=name,
        is_dense=operand != "f32",
        operand_type=operand,
        accumulator_type=accumulator,
        precision="DEFAULT",
        left_shape="[1]",
        right_shape="[1]",
    )


def counted(connection) -> dict[str, int]:
    found = connection.execute(
        "select measure || ' ' || case_name as name, max(value_count)"
        " from derived_measurements group by name"
    )
    return dict(found.fetchall())


def test_artifact_bytes_of_a_release_are_those_of_both_endpoints(made, opened):
    made.execute("export_endpoints", [endpoint("prefill", 7), endpoint("decode", 8)])
    rows = [policy("int4", "format"), policy("w8", "experiment")]
    made.execute("quantize_cache", [*rows, policy("fp32", "release")])
    made.run("run-1")
    found = opened().execute(
        "select policy, artifact_bytes, is_supported, reason from policies"
    )
    assert found.fetchall() == [
        ("fp32", 15, True, None),
        ("w8", 50, True, None),
        ("int4", 50, False, "not_supported"),
    ]


def test_one_criterion_says_what_is_supported_and_what_is_widened(made, opened):
    near, far = {"largest_logit_error": 0.3}, {"largest_logit_error": 0.31}
    rows = [
        policy("near", "format", **(MEASURED | near)),
        policy("far", "format", **(MEASURED | far | {"reason": "beyond_limit"})),
        policy("half", "experiment", reached="compiled"),
        policy("fp16", "experiment", lowered_operands="float16"),
        policy("int4", "format", compiled_operands="none"),
    ]
    made.execute("quantize_cache", rows)
    found = opened().execute(
        "select policy, is_supported, multiplied from policy_support"
    )
    assert found.fetchall() == [
        ("far", False, "native"),
        ("fp16", True, "widened"),
        ("half", False, "native"),
        ("int4", False, "none"),
        ("near", True, "native"),
    ]


@pytest.mark.parametrize(
    ("measure", "kind", "changes"),
    [
        *(("incomplete", "release", {text: " "}) for text in (*TEXTS, "cache")),
        ("incomplete", "experiment", {"artifact_bytes": None}),
        ("incomplete", "experiment", {"decode_ns": 0}),
        ("miscounted", "release", {"weight_bytes": 11}),
        ("miscounted", "release", {"optimizer_bytes": 31}),
        ("miscounted", "release", {"cache_bytes": 21}),
        ("miscounted", "release", {"cache": "int8"}),
        ("miscounted", "release", {"heldout_nats_per_token": 1.5000000000000002}),
        ("miscounted", "release", {"heldout_targets": 3}),
        ("miscounted", "release", {"largest_logit_error": 0.05}),
        ("miscounted", "release", {"changed_top_tokens": 0}),
        ("miscounted", "format", {"heldout_targets": 2}),
        ("unexplained", "format", {"reason": None}),
        ("unexplained", "format", {"detail": ""}),
        ("unexplained", "release", {"reason": "not_supported"}),
        ("unexplained", "release", {"reached": "compiled"}),
        ("unexplained", "experiment", {"largest_logit_error": 0.4}),
        ("unsupported", "release", {"reached": "lowered"}),
        ("unsupported", "experiment", {"largest_logit_error": 0.4}),
    ],
)
def test_a_policy_without_its_figures_or_reason_is_found(
    made, opened, measure: str, kind: str, changes: dict
):
    kinds = {"fp32": "release", "w8": "experiment", "int4": "format"}
    rows: list = [CACHE]
    for name, own in kinds.items():
        rows += beneath(name, is_measured=own != "format")
    good = [policy(name, own) for name, own in kinds.items()]
    made.execute("quantize_cache", [*rows, *good])
    found = counted(opened())
    for own in kinds.values():
        assert found[f"recounted_policies {own}"] == 1
        what = "formats" if own == "format" else "policies"
        assert found[f"recounted_{what}_unsupported {own}"] == (own == "format")
        for other in ("incomplete", "miscounted", "unexplained"):
            assert found[f"recounted_policies_{other} {own}"] == 0
    bad = [
        policy(name, own, **(changes if own == kind else {}))
        for name, own in kinds.items()
    ]
    made.execute("quantize_cache", [*rows, *bad], key="other")
    assert counted(opened())[f"recounted_policies_{measure} {kind}"] == 1


def test_what_stays_float32_is_listed_with_the_products(made, opened):
    dots = [dot("h.0.attn.c_attn", 1, "i8", "i32"), dot("lm_head", 2, "f32", "f32")]
    made.execute("export_endpoints", [endpoint("decode", 8), *dots])
    made.run("run-1")
    connection = opened()
    found = connection.execute("select operation, kind from float32_operations")
    assert found.fetchall() == [
        ("dot_general lm_head", "product"),
        ("add", "arithmetic"),
        ("exponential", "arithmetic"),
    ]
    types = connection.execute(
        "select policy, dot, operand_type, accumulator_type, count(*)"
        " from lowered_dots group by all order by all"
    ).fetchall()
    assert types == [
        ("fp32", "h.0.attn.c_attn", "i8", "i32", 1),
        ("fp32", "lm_head", "f32", "f32", 1),
    ]


@pytest.mark.parametrize(
    ("products", "operations", "unlisted", "listed"),
    [
        (
            '{"f32,f32->f32 HIGHEST": 1, "i8,i8->i32 DEFAULT": 1}',
            "add,exponential",
            0,
            2,
        ),
        ('{"f32,f32->f32 HIGHEST": 2, "i8,i8->i32 DEFAULT": 1}', "add,add", 1, 1),
        ('{"bf16,f32->f32 DEFAULT": 2}', "", 1, 0),
        ('{"i8,i8->i32 DEFAULT": 9}', "add", -1, 1),
        ("no JSON", "add", -1, 1),
    ],
)
def test_a_float32_product_beside_the_listed_ones_is_found(
    made, opened, products: str, operations: str, unlisted: int, listed: int
):
    """One float32 product is listed: the output head."""
    dots = [dot("h.0.attn.c_attn", 1, "i8", "i32"), dot("lm_head", 2, "f32", "f32")]
    read = dataclasses.replace(
        endpoint("decode", 8), matrix_products=products, float32_operations=operations
    )
    made.execute("export_endpoints", [read, *dots])
    found = counted(opened())
    assert found["recounted_float32_products_unlisted fp32/decode"] == unlisted
    assert found["recounted_float32_operations fp32/decode"] == listed


def test_noise_stands_beside_its_limit_and_the_reason(made, opened, claim, requirement):
    rows = [
        Measurement(
            claim="1.1", measure="error", case_name=case, value_real=value, unit="1"
        )
        for case, value in (("a", 0.1), ("b", 0.2))
    ]
    made.execute("train_model", rows)
    made.run("run-1")
    rule = requirement(
        measure="error", relation="at_most", limit=2.0, unit="1", reason="ten times"
    )
    found = opened(claim(rule, requirement())).execute(
        "select measure, largest_value, share_of_limit, limit_reason"
        " from measured_noise"
    )
    assert found.fetchall() == [("error", 0.2, 0.1, "ten times")]
