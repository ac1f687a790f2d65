import json
import os
import subprocess
import sys
import time

from . import entry

how = entry.request["how"]
entry.say(json.dumps({"event": "ready", "pid": os.getpid()}))
if how == "refuse":
    refusal = {"code": "split_empty", "message": "The split is empty."}
    refusal["fields"] = ["splits.train"]
    (entry.out / "refused.json").write_text(json.dumps(refusal))
    sys.exit(2)
if how == "crash":
    raise ValueError("the loss is a walnut")
if how == "vanish":
    sys.exit(1)
if how == "chatter":
    entry.say("hello")
if how == "spawn":
    sleep = "import time; time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", sleep])
    entry.say(json.dumps({"event": "child", "pid": child.pid}))
if how == "fork" and os.fork() == 0:
    # It has the parent's standard output, where progress is read.
    time.sleep(600)
if how == "vanish_well":
    sys.exit(0)
if how in ("linger", "outlast"):
    time.sleep(5 if how == "linger" else 100)
if how in ("hang", "spawn"):
    time.sleep(600)
entry.finish("misbehaved.txt", 0)
