-- grain: path, execution_id, problem
-- reads: raw.damage
-- review: no row; a damaged file gives no number, and its stage has to run again
select
    path,
    kind,
    problem,
    stage,
    execution_id,
    run_id
from raw.damage
order by kind, path, execution_id
