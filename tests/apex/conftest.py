"""One torch thread for all these tests, as in training: batches this small are slower on several. And the scripts."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))


@pytest.fixture(autouse=True, scope="session")
def _one_torch_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def ray_here():
    """A Ray of this machine that the tests have started and that clusters must leave alone."""
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()
