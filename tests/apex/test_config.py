"""The settings: documented, used, checked."""

import ast
import dataclasses
import inspect
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

import agents.apex
from agents.apex import ApeXConfig

FIELDS = [field.name for field in dataclasses.fields(ApeXConfig)]
SOURCES = [path for path in Path(agents.apex.__file__).parent.glob("*.py") if path.name != "config.py"]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_read_somewhere(name):
    nodes = (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())))
    assert any(isinstance(node, ast.Attribute) and node.attr == name for node in nodes)


def test_every_field_has_a_line_of_documentation():
    body = ast.parse(inspect.getsource(ApeXConfig)).body[0].body
    documented = {
        node.target.id
        for node, after in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr)
    }
    assert documented == set(FIELDS)


BAD = {
    "cluster": "cloud",
    "num_actors": 0,
    "envs_per_actor": -1,
    "n_step": 2.5,
    "gamma": 1.1,
    "reward_scale": 0.0,
    "exploration": "curious",
    "noisy_sigma": -0.5,
    "conv_channels": 16,
    "max_epsilon": float("nan"),
    "epsilon_alpha": -1.0,
    "warmup_steps": 0,
    "block_steps": "50",
    "update_param_interval": 0,
    "memory_size": 10,
    "priority_exponent": -0.1,
    "importance_sampling_exponent": 2,
    "importance_annealing_steps": 0,
    "hidden_sizes": [64, 0],
    "layer_norm": "yes",
    "batch_size": True,
    "samples_per_insert": 0,
    "learning_rate": float("inf"),
    "final_learning_rate": -1e-3,
    "adam_epsilon": 0.0,
    "annealing_steps": 0,
    "max_gradient_norm": 0,
    "target_update_interval": 0,
    "target_update_rate": 0.0,
    "averaging_rate": 1.5,
    "evaluation_interval": 0,
    "evaluation_episodes": 0,
    "keep_best": 1,
    "checkpoint_interval": 0,
    "log_interval": 0,
    "run_folder": 5,
    "max_restarts": -1,
    "watchdog_seconds": 0,
    "ray_address": 6379,
    "ray_cpus": -1,
    "ray_resources": {"arm": -1},
    "ray_placement": "EVERYWHERE",
}


def test_the_table_of_bad_values_is_complete():
    assert set(BAD) == set(FIELDS)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_in_one_sentence_that_names_it(name):
    with pytest.raises(ValueError, match=name) as caught:
        ApeXConfig(**{name: BAD[name]})
    assert "must be" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in FIELDS if isinstance(getattr(ApeXConfig(), name), (int, float))])
def test_numbers_beyond_all_machines_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ApeXConfig(**{name: 10**400})


@pytest.mark.parametrize("name", ["num_actors", "envs_per_actor", "block_steps", "batch_size", "memory_size"])
def test_sizes_beyond_all_machines_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer from 1 to"):
        ApeXConfig(**{name: 10**10})


def test_layers_beyond_all_machines_are_refused():
    with pytest.raises(ValueError, match=r"hidden_sizes must be integers from 1 to 100000 .*, not \(1000000,\)"):
        ApeXConfig(hidden_sizes=(10**6,))


def test_settings_go_through_json():
    config = ApeXConfig(hidden_sizes=(32,), gamma=0.5)
    assert ApeXConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_an_unknown_setting_is_named_with_the_legal_ones():
    with pytest.raises(ValueError, match=r"unknown setting 'epsilon'; legal are .*max_epsilon"):
        ApeXConfig.from_dict({"epsilon": 0.1})


def test_the_record_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ApeXConfig().gamma = 0.5


def test_ids_without_a_file_get_the_defaults_and_the_cart_pole_scales_its_rewards_too():
    assert ApeXConfig.preset("NoFile-v0") == ApeXConfig()
    pole = ApeXConfig.preset("NumpyCartPole-v1")
    assert ApeXConfig.preset("NumpyCartPole-v0") == pole == ApeXConfig(reward_scale=0.1)


@pytest.mark.parametrize("file", sorted((Path(agents.apex.__file__).parent / "presets").glob("*.json")), ids=str)
def test_every_preset_file_is_legal(file):
    assert isinstance(ApeXConfig.preset(file.stem), ApeXConfig)


OWN = ("NumpyCartPole-v0", "NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0")
VARIANTS = tuple(f"MyEnv{name}-v0" for name in ("Static", "Dense", "Hard", "Partial"))


@pytest.mark.parametrize("env_id", [*OWN, *VARIANTS])
def test_every_id_of_the_project_has_a_file(env_id):
    assert (Path(agents.apex.__file__).parent / "presets" / f"{env_id}.json").is_file()


def test_no_id_of_the_project_is_forgotten():
    """In a process of its own: other tests register worlds, which look the same."""
    code = (
        "import gymnasium; before = set(gymnasium.registry); import gym_custom;"
        " print(*sorted(set(gymnasium.registry) - before))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == sorted({*OWN, *VARIANTS})


@pytest.mark.parametrize("env_id", VARIANTS)
def test_variants_of_an_id_are_trained_like_it(env_id):
    assert ApeXConfig.preset(env_id) == ApeXConfig.preset("MyEnv-v0") != ApeXConfig()
