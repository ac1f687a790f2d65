"""One Prefect task a stage: load, run the program, record, hand over.

| stage | needs | keeps | review tasks |
| --- | --- | --- | --- |
| tokenize_corpus | a manifest | token table, split digests | 1 |
| train_model | tokens | parameters, training state, trace of digests | 1, 2 |
| interrupt_training | tokens | checkpoints of killed trainings | 2 |
| resume_training | tokens, training, interruptions | comparison with the whole | 2 |
| evaluate_heldout | tokens, training | losses per token, other first seeds | 1, 2 |
| quantize_cache | tokens, training | cache policies measured | 3 |
| export_endpoints | tokens, training, cache | six endpoints and their release | 3, 4 |
| profile_runtime | tokens, training, endpoints | times and a trace, alone | 4 |
| certify_recovery | tokens, training | every point compared, refusals | 2 |
| certify_crash | tokens, training | what each killed checkpoint write left | 2 |
| drill_recovery | tokens, training | faults planted into a restore, and found | 2 |
| drill_system | a manifest | every fault of the system against the contract | – |
| drill_store | – | every fault of store, workflow and target | – |
| qualify_tpu | tokens, training, endpoints | what the target has to show | 5 |
| rehearse_target | tokens | a target rehearsed by CPU controllers | 5 |
| rehearse_remote | tokens | the same on workers of several hosts | 5 |
| train_on_target | tokens, a release | the result of all hosts of a target | 5 |
| qualify_target | a result of a target | its rows beside the reference | 5 |

A stage's own module is `tasks/<stage>.py`. The rest is the same for all of them:
`stage` makes a task of a body, `work` is what a body works with, `identity` and
`source_closure` name what a result depends on, `reuse` joins Prefect's cache to the
store, `run_program`, `children` and `program_environment` start and end programs.
"""
