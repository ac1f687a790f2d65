-- grain: run_id
-- reads: raw.selection
-- review: the run that was asked for, and the subject that the verdicts are about
select
    run_id,
    subject,
    has_history
from raw.selection
