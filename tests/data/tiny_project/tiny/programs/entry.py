import json
import os
import signal
import sys
import threading
from pathlib import Path


def watch():
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


threading.Thread(target=watch, daemon=True).start()
request = json.loads(Path(sys.argv[1]).read_bytes())
out = Path(request["out"])
(out / "artifacts").mkdir()
(out / "records").mkdir()


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def finish(name, number):
    (out / "artifacts" / name).write_text(str(number))
    row = {
        "claim": "1.1",
        "measure": "number",
        "case_name": "",
        "value_count": number,
        "value_real": None,
        "unit": "1",
        "reason": None,
        "detail": "",
    }
    (out / "records" / "measurements.json").write_text(json.dumps([row]))
    (out / "program.json").write_text(
        json.dumps({"peak_memory_bytes": 1, "runtime": request.get("runtime")})
    )
