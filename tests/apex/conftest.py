"""One torch thread for all these tests, as in training: batches this small are slower on several."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_torch_thread():
    torch.set_num_threads(1)
