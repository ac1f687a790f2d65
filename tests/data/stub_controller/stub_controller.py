"""A controller without JAX that behaves as it is asked, for tests of the launcher."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
number, act = request["process"], request["act"]


def tell(**event: object) -> None:
    sys.stdout.write(json.dumps({"process": number, **event}) + "\n")
    sys.stdout.flush()


# As a program of ours: it ends when its launcher does.
threading.Thread(target=lambda: (os.read(0, 1), os._exit(3)), daemon=True).start()
if act == "ignore SIGTERM":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for update in range(1, 4):
    tell(event="update", update=update)
    time.sleep(0.05)
if act == "crash":
    sys.exit(1)
if act == "lose the other":
    time.sleep(0.05)
    os._exit(17)
if act == "hang with a child" and os.fork() == 0:
    time.sleep(600)
if act in ("hang", "hang with a child", "ignore SIGTERM"):
    tell(event="hanging", update=3)
    time.sleep(600)
if act == "leave a child":
    if os.fork() == 0:
        time.sleep(600)
    os.abort()
(Path(request["out"]) / "program.json").write_text("{}")
