"""The production controller with one planted fault a training, named by its label."""

import jax
import numpy as np
from jax.experimental import multihost_utils

from model import sharded_checkpoint
from model.checkpoint import write_checkpoint
from model.data_parallel import gather_controllers
from model.programs import entry, train_controller
from model.shared_checkpoint import SharedCheckpoints

Controller = train_controller.Controller


def exchange_hosts(controller: Controller) -> None:
    """The documents of the second host come first."""

    def gather(tree):
        gathered = gather_controllers(tree)
        return jax.tree.map(lambda x: np.roll(x, len(x) // 2, axis=0), gathered)

    controller.make_update.gather = gather


def overlap(controller: Controller) -> None:
    """Every host computes the documents of the first one."""
    update = controller.make_update
    update.own = [(device, i) for i, (device, _) in enumerate(update.own)]


def average_means(controller: Controller) -> None:
    """Each host divides by its own valid targets, and means are averaged."""

    def gather(tree):
        gathered = gather_controllers(tree)
        own, total = np.sum(tree[1]), np.sum(gathered[1])
        share = np.float32(total / (jax.process_count() * own))
        scaled = (tree[0] * share, tree[1], {n: x * share for n, x in tree[2].items()})
        return multihost_utils.process_allgather(scaled, tiled=True)

    controller.make_update.gather = gather


class WrittenByAll(SharedCheckpoints):
    """Checkpoints that each controller writes to a folder of its own, and tells."""

    def save(self, state, progress, identity, before_commit=lambda: None):
        described = {"count": 1, "parts": []}
        folder = self.folder / f"of-{jax.process_index()}"
        return write_checkpoint(folder, state, progress, identity, parts=described).name


def write_by_all(controller: Controller) -> None:
    """No controller leaves the checkpoint to the first one."""
    own = controller.checkpoints
    controller.checkpoints = WrittenByAll(own.place, own.folder)


def keep_whole(controller: Controller) -> None:
    """The state of a training in parts lies as a copy on every device."""
    update = controller.make_update
    update.layout = lambda state: jax.tree.map(lambda _: update.everywhere, state)


def digest_the_first(controller: Controller) -> None:
    """The first controller's digest stands for the parts of all."""
    gathered = sharded_checkpoint.gathered_digests

    def repeated(digest):
        return [gathered(digest)[0]] * jax.process_count()

    sharded_checkpoint.gathered_digests = repeated


FAULTS = {
    "exchange_hosts": exchange_hosts,
    "overlap": overlap,
    "average_means": average_means,
    "write_by_all": write_by_all,
    "keep_whole": keep_whole,
    "digest_the_first": digest_the_first,
}


class Faulty(Controller):
    def run(self) -> None:
        FAULTS.get(self.training.label, lambda controller: None)(self)
        super().run()


train_controller.Controller = Faulty

if __name__ == "__main__":
    entry.run(train_controller.main)
