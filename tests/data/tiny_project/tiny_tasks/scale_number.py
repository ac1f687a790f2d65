from tasks.stage import stage
from warehouse.records.claims import Measurement


@stage(
    programs=("tiny.programs.scale_number",),
    writes=(Measurement,),
    not_in_key=("place",),
)
def scale_number(work, number, place=""):
    work.run("tiny.programs.scale_number", {"number": number})
