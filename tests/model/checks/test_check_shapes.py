"""The shape table is read off the traced program, so it follows the program."""

from model.checks.shapes import measure_shapes
from model.config import ModelConfig
from model.parameters import initial_parameters

MODEL = ModelConfig()


def details(model: ModelConfig, batch: int) -> dict[str, str]:
    parameters = initial_parameters(MODEL, 0)
    rows = measure_shapes(parameters, model, batch)
    return {row["case_name"]: row["detail"] for row in rows if row["detail"]}


def test_parameters_lookups_and_products_stand_in_the_table() -> None:
    table = details(MODEL, 16)
    assert table["parameter/h.0.attn.c_attn.weight"] == "float32 [24, 72]"
    computed = [shape for case, shape in table.items() if case.startswith("computed")]
    assert computed[0] == computed[1] == "float32 [16, 12, 24]"
    assert computed[2] == "float32 [16, 12, 72]"
    assert computed[3] == "float32 [16, 2, 12, 12]"
    assert computed[-1] == "float32 [16, 12, 259]"
    assert len(computed) == 9


def test_the_elements_of_all_parameters_are_those_of_the_declared_model() -> None:
    rows = measure_shapes(initial_parameters(MODEL, 0), MODEL, 1)
    found = {row["measure"] + row["case_name"]: row["value_count"] for row in rows}
    block = 24 * 72 + 72 + 24 * 24 + 24 + 24 * 48 + 48 + 48 * 24 + 24
    total = 2 * 259 * 24 + 12 * 24 + 3 * 48 + block
    assert found["parameter_elements"] == total == 17640
    assert found["traced_arraysparameter"] == 17
    assert found["traced_arrayscomputed"] == 9


def test_another_head_count_shows_in_the_table() -> None:
    changed = details(ModelConfig(heads=4), 1)
    assert changed["computed/03-dot_general"] == "float32 [1, 4, 12, 12]"
