from tiny.programs import entry
from tiny.scale import FACTOR

entry.finish("number.txt", entry.request["number"] * FACTOR)
