from tasks.stage import stage
from warehouse.records.claims import Measurement


@stage(programs=("tiny.programs.add_one",), writes=(Measurement,))
def add_one(work, scaled):
    work.run("tiny.programs.add_one", work.fetch(scaled, "number.txt"))
