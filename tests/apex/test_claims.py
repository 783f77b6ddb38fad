"""Only one training at a time goes on in a run folder."""

import json

import psutil
import pytest

from agents.apex import ApeX
from agents.apex.claims import NAME, claimed

from .helpers import agent


def test_a_folder_in_which_a_training_goes_on_is_refused_and_left_alone(tmp_path):
    first = agent(tmp_path)
    first.learn(400)
    first.save(tmp_path / "first.apex")
    log = first.run_folder / "progress.csv"
    log.write_text(log.read_text() + "999999" + "," * 5 + "\n")  # what a run that is ahead has written
    before = log.read_bytes()
    with claimed(first.run_folder):
        second = ApeX.load(tmp_path / "first.apex")
        with pytest.raises(ValueError, match=f"process {psutil.Process().pid} trains in .*run just now"):
            second.resume_in(first.run_folder)
        with pytest.raises(ValueError, match="just now"):
            first.learn(100)
    assert log.read_bytes() == before
    first.learn(100)
    assert not (first.run_folder / NAME).exists()


@pytest.mark.parametrize("change", [{"pid": 2**22 + 1}, {"since": 0.0}, {"host": "elsewhere"}, {"pid": "one"}, None])
def test_the_claim_of_a_process_that_is_gone_is_void(tmp_path, change):
    with claimed(tmp_path):
        claim = json.loads((tmp_path / NAME).read_text())
    text = "half a cla" if change is None else json.dumps(claim | change)
    (tmp_path / NAME).write_text(text)
    with claimed(tmp_path):
        assert json.loads((tmp_path / NAME).read_text()) == claim
    assert not (tmp_path / NAME).exists()
