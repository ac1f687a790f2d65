import pathlib

from . import entry

number = int(pathlib.Path(entry.request["number.txt"]).read_text())
entry.finish("sum.txt", number + 1)
