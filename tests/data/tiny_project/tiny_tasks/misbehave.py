from tasks.stage import stage
from warehouse.records.claims import Measurement


@stage(
    programs=("tiny.programs.misbehave", "tiny.programs.scale_number"),
    writes=(Measurement,),
)
def misbehave(work, how):
    if how == "half_way":
        # It has made rows and an artifact by the time that it fails.
        work.run("tiny.programs.scale_number", {"number": 7})
        how = "crash"
    work.run("tiny.programs.misbehave", {"how": how})
