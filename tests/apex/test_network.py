"""The dueling network and its inputs."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector.utils import batch_space

from agents.apex.features import feature_array, input_range
from agents.apex.frozen import FrozenNetwork
from agents.apex.network import (
    DuelingNetwork,
    FlatParameters,
    features,
    load_arrays,
    make_network,
    to_arrays,
)

SPACES = [
    gym.spaces.Box(-1.0, 1.0, (3,), np.float32),
    gym.spaces.Box(0, 255, (4, 5, 3), np.uint8),
    gym.spaces.Discrete(5, start=-2),
    gym.spaces.MultiDiscrete([5, 4], start=[1, 0]),
    gym.spaces.MultiBinary(6),
    gym.spaces.Dict(b=gym.spaces.Discrete(3), a=gym.spaces.Box(-1.0, 1.0, (2, 2), np.float64)),
    gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Dict(x=gym.spaces.MultiDiscrete([2, 3]))]),
]


@pytest.fixture
def network():
    space = SPACES[0]
    return make_network(space, gym.spaces.Discrete(3), (16, 16), True, seed=1)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_features_are_gymnasiums_flattened_observations(space):
    batched = batch_space(space, 4)
    batched.seed(3)
    batch = batched.sample()
    got = features(space, batch).numpy()
    rows = list(gym.vector.utils.iterate(batched, batch))
    want = np.stack([gym.spaces.flatten(space, row) for row in rows])
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want.astype(np.float32))


def test_a_space_that_cannot_be_read_is_named():
    with pytest.raises(ValueError, match=r"cannot read Text.*legal are Box"):
        features(gym.spaces.Text(5), ["a"])


def test_a_rows_values_do_not_depend_on_its_neighbours(network):
    x = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(network(x)[:1], network(x[:1]))


def test_values_are_torchs_modules_one_after_the_other(network):
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    hidden = x  # the bounds are -1 and 1
    for layer, norm in zip(network.body, network.norms, strict=True):
        hidden = torch.relu(norm(layer(hidden)))
    advantage = network.advantage(hidden)
    centred = advantage - advantage.mean(1, keepdim=True)
    torch.testing.assert_close(network(x), network.value(hidden) + centred)


def test_the_mean_advantage_carries_gradient():
    network = DuelingNetwork(np.zeros(2), np.ones(2), 4, (8,), False)
    network(torch.ones(1, 2))[0, 0].backward()
    torch.testing.assert_close(network.advantage.bias.grad, torch.tensor([0.75, -0.25, -0.25, -0.25]))
    torch.testing.assert_close(network.value.bias.grad, torch.tensor([1.0]))


def test_a_copy_computes_with_its_own_parameters(network):
    copy = deepcopy(network)
    FlatParameters(copy)
    x = torch.ones(1, 3)
    assert torch.equal(copy(x), network(x))
    with torch.no_grad():
        network.value.bias += 1
    torch.testing.assert_close(network(x), copy(x) + 1)


def test_initial_weights_depend_on_the_seed_alone_and_leave_the_global_generator():
    space = SPACES[0]
    before = torch.random.get_rng_state()
    first, again, other = (make_network(space, gym.spaces.Discrete(2), (8,), True, s) for s in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(p, q) for p, q in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.value.weight, other.value.weight)


def test_the_flat_vector_is_the_network(network):
    before = to_arrays(network)
    flat = FlatParameters(network)
    after = to_arrays(network)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    network(torch.ones(2, 3)).sum().backward()
    gradients = torch.cat([p.grad.reshape(-1) for p in network.parameters()])
    assert torch.equal(gradients, flat.gradient)
    with torch.no_grad():
        flat.vector.zero_()
    assert all((p == 0).all() for p in network.parameters())


def test_arrays_travel_and_share_nothing(network):
    other = make_network(SPACES[0], gym.spaces.Discrete(3), (16, 16), True, seed=2)
    arrays = to_arrays(network)
    load_arrays(other, arrays)
    x = torch.ones(1, 3)
    assert torch.equal(network(x), other(x))
    arrays["value.bias"] += 1
    assert torch.equal(network(x), other(x))


def test_inputs_with_bounds_are_brought_to_one_and_others_left_alone():
    low, high = np.float32([-4.8, -np.inf, 0.0, -3e38]), np.float32([4.8, np.inf, 255.0, 3e38])
    box = gym.spaces.Box(low, high)
    space = gym.spaces.Dict(a=box, b=gym.spaces.Discrete(2))
    middle, half = input_range(space)
    np.testing.assert_allclose(middle, [0, 0, 127.5, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(half, [4.8, 1, 127.5, 1, 1, 1], rtol=1e-6)
    network = make_network(space, gym.spaces.Discrete(2), (), False, 0)  # a linear function of the inputs
    inputs, brought = torch.tensor([[4.8, 7.0, 0.0, 2.0, 1.0, 0.0]]), torch.tensor([[1.0, 7.0, -1.0, 2.0, 1.0, 0.0]])
    a = network.advantage(brought)
    torch.testing.assert_close(network(inputs), network.value(brought) + a - a.mean())


@pytest.mark.parametrize("space", SPACES[:2] + SPACES[5:6], ids=str)
@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("hidden_sizes", [(), (8,), (64, 64)])
def test_the_network_in_numpy_is_the_one_in_torch(space, hidden_sizes, layer_norm):
    net = make_network(space, gym.spaces.Discrete(3), hidden_sizes, layer_norm, seed=2)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # weights as training leaves them: no norm has gain 1 and shift 0
        for p in net.parameters():
            p += 0.3 * torch.randn(p.shape, generator=generator)
    batched = batch_space(space, 50)
    batched.seed(3)
    batch = batched.sample()
    frozen = FrozenNetwork(to_arrays(net))
    with torch.no_grad():
        want = net(features(space, batch)).numpy()
    got = frozen(feature_array(space, batch))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6 * abs(want).max())


def test_the_network_in_numpy_keeps_its_weights():
    net = make_network(SPACES[0], gym.spaces.Discrete(3), (8,), True, seed=2)
    arrays, x = to_arrays(net), np.ones((2, 3), np.float32)
    frozen = FrozenNetwork(arrays)
    before = frozen(x)
    for array in arrays.values():
        array[...] = np.nan
    np.testing.assert_array_equal(frozen(x), before)
    np.testing.assert_array_equal(x, 1.0)


@pytest.mark.parametrize("bad", [-3, 3, 7])
def test_a_category_outside_its_space_is_named(bad):
    with pytest.raises(ValueError, match=f"category {bad} is none of -2 to 2"):
        feature_array(SPACES[2], np.array([0, bad]))
