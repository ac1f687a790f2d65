"""What a compiled program says about itself is read from its text."""

from model import compiled

TEXT = """
HloModule jit_f, entry_computation_layout={()->f32[2,2]{1,0}}

ENTRY %main.1 (x.1: f32[2,2]) -> f32[2,2] {
  %x.1 = f32[2,2]{1,0} parameter(0), metadata={op_name="x" source_line=3}
  %y.1 = bf16[2,2]{1,0} parameter(1)
  %c.1 = f32[2,2]{1,0} convolution(f32[2,2]{1,0} %x.1, f32[2,2]{1,0} %x.1), operand_precision={highest,highest}
  %c.2 = f32[2,2]{1,0} dot(%x.1, %y.1), lhs_contracting_dims={1}
  %r.1 = f32[2,2]{1,0} all-reduce-start(%c.1), to_apply=%add
  ROOT %s.1 = f32[2,2]{1,0} add(%c.1, %c.2)
}
"""  # noqa: E501


def test_products_are_counted_by_operands_sum_and_precision() -> None:
    assert compiled.products(TEXT) == {
        "f32,f32->f32 highest,highest": 1,
        "f32,bf16->f32 default": 1,
    }


def test_instructions_and_collectives_are_counted() -> None:
    assert compiled.instruction_count(TEXT) == 6
    assert compiled.collectives(TEXT) == {"all-reduce": 1}


def test_a_digest_does_not_see_where_a_line_of_source_stands() -> None:
    moved = TEXT.replace("source_line=3", "source_line=4")
    other = TEXT.replace("highest,highest", "default,default")
    assert compiled.program_sha256(moved) == compiled.program_sha256(TEXT)
    assert compiled.program_sha256(other) != compiled.program_sha256(TEXT)
