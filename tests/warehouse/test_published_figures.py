"""Published figures stand beside a corpus with a grammar, and beside no other."""

from warehouse.records.claims import Measurement
from warehouse.records.inference import Generation
from warehouse.records.training import Baseline


def baseline(name: str) -> Baseline:
    return Baseline(name=name, split="heldout", nats_per_token=0.8, rule="made up")


def measurement(measure: str, case: str, **value: float) -> Measurement:
    return Measurement(
        claim="1.12", measure=measure, case_name=case, unit="made up", **value
    )


def completion(prompt: str, text: str, policy: str = "fp32") -> Generation:
    return Generation(
        release_policy=policy,
        prompt=prompt,
        expected=None,
        text=text,
        token_ids="[1]",
        stop_reason="end_of_sequence",
        new_tokens=1,
        is_expected=None,
        note="",
    )


def test_each_figure_stands_beside_what_was_measured_under_the_same_name(made, opened):
    loss = measurement("heldout_nats_per_token", "", value_real=1.25)
    made.execute("evaluate_heldout", [baseline("entropy_floor"), loss])
    made.execute(
        "quantize_cache",
        [
            measurement("cache_bytes", "bf16", value_count=1344),
            measurement("largest_logit_error", "bf16-cache", value_real=0.03),
        ],
    )
    generated = [completion("abc|", "cba"), completion("abc|", "no", "bf16")]
    # the loss through the endpoints has the same name and another stage
    other = measurement("heldout_nats_per_token", "", value_real=9.0)
    made.execute("export_endpoints", [*generated, other])
    made.run("run")
    shown = {
        figure: (published, measured)
        for figure, published, measured in opened()
        .execute("select figure, published, measured from published_figures")
        .fetchall()
    }
    assert len(shown) == 11
    assert shown["held-out loss"] == ("1.071", "1.2500")
    assert shown["cache, BF16"] == ("1344", "1344")
    assert shown["logits, BF16 cache"] == ("0.0385", "0.0300")
    assert shown["completion of abc|"] == ("cbc", "cba")
    assert shown["held-out perplexity"] == ("2.918", None)


def test_text_without_a_grammar_has_no_published_figures(made, opened):
    made.execute("evaluate_heldout", [baseline("training_frequency")])
    made.run("run")
    assert opened().execute("select * from published_figures").fetchall() == []
