"""The file that `harness starter` writes: every function of a system, to fill in."""

import textwrap

from model.system import FUNCTIONS, PARAMETER_SHAPES, Function

WIDTH = 84
HEAD = '''"""My own implementation, for text-harness to qualify.

Fill in the functions that you want to have checked and delete the others: the built-in
ones then stand in their place, and nothing is asked about them.

    harness check --implementation {file} --stage 1

Arrays are written dtype [axes]: B batch, T time, D model width, H heads, K head width,
F feed-forward width, V vocabulary, L blocks, C context, S documents. A model has
model.vocabulary_tokens, .context_tokens, .width, .heads, .head_width,
.feed_forward_width, .blocks, .dropout_rate and .layer_norm_epsilon.

A system is a GPT-2 with an untied head: pre-LayerNorm, fused QKV, scores / sqrt(K),
tanh GELU, final LayerNorm. `parameters` is a dictionary of float32 arrays by name:

{parameters}

A function may import what lies beside this file. It has to give the same bytes for the
same arguments, to leave its arguments alone, and to keep nothing between two calls.
"""

'''


def starter_text(file: str) -> str:
    """Returns the text of a starter.

    Args:
        file: Name of the file.
    """
    parameters = "\n".join(
        f"    {name:<30} [{axes}]" for name, axes in PARAMETER_SHAPES.items()
    )
    head = HEAD.format(file=file, parameters=parameters)
    return head + "\n\n".join(_definition(each) for each in FUNCTIONS)


def _definition(function: Function) -> str:
    tasks = ", ".join(map(str, function.review_tasks))
    kind = "inside jax.jit: use jax.numpy" if function.is_traced else "on the host"
    lines = [f"def {function.signature}:", f'    """{function.does}', ""]
    lines += _paragraph(f"Checked by --stage {tasks}. Runs {kind}.")
    if function.notes:
        lines += _paragraph(function.notes)
    lines += ["", "    Args:"]
    for name, what in (*function.takes.items(), *_options(function)):
        lines += _paragraph(f"{name}: {what}.", 8)
    lines += ["", "    Returns:"]
    lines += _paragraph(f"{'; '.join(function.gives)}.", 8)
    lines += ['    """', f'    raise NotImplementedError("{function.name}")', ""]
    return "\n".join(lines)


def _options(function: Function) -> list[tuple[str, str]]:
    """Returns the keyword arguments that may be left out of a definition."""
    return [
        (name, f"{what}; delete it and the built-in function answers such calls")
        for name, what in function.options.items()
    ]


def _paragraph(text: str, indent: int = 4) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4 * (indent > 4)),
    )
