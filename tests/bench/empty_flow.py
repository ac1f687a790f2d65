"""A flow of nine tasks that do nothing, with the edges of the real one.

What it costs is Prefect's; what a reused run costs beyond it is ours.
"""

from prefect import flow, task


@task
def nothing(*needs: object) -> int:
    """Returns a number, so that the next task has something to wait for."""
    return len(needs)


@flow
def empty() -> None:
    """Submits nine tasks in the order of the stages."""
    tokens = nothing.submit()
    trained = nothing.submit(tokens)
    interrupted = nothing.submit(tokens)
    resumed = nothing.submit(tokens, trained, interrupted)
    evaluated = nothing.submit(tokens, trained)
    quantized = nothing.submit(tokens, trained)
    exported = nothing.submit(tokens, trained, quantized)
    profiled = nothing.submit(tokens, trained, exported)
    target = nothing.submit(trained, exported)
    for future in (resumed, evaluated, profiled, target):
        future.result()


if __name__ == "__main__":
    empty()
