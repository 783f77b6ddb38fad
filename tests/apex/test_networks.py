"""Pictures and noise: the plain NumPy network against torch, torch against formulas."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.apex.actor import ActorPlan, build_actor
from agents.apex.envs import resolve
from agents.apex.frozen import FrozenNetwork
from agents.apex.images import Image, images_in
from agents.apex.inline import InlineChannel
from agents.apex.learner import Learner
from agents.apex.mailbox import Mailbox
from agents.apex.network import FlatParameters, features, make_network, to_arrays
from agents.apex.noise import draw_noise, perturbed
from agents.replay import PrioritizedMemory
from agents.types import Transition, Weights

from .helpers import agent, parameters, small

ACTIONS = spaces.Discrete(3)


def picture(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


SPACES = {
    "last": picture(12, 9, 3),
    "first": picture(4, 11, 10),
    "gray": picture(7, 8),
    "one pixel": picture(1, 1, 2),
    "dict": spaces.Dict(
        {
            "eye": picture(9, 9, 3),
            "map": spaces.Tuple([picture(6, 5), spaces.Discrete(4), picture(3, 8, 8)]),
            "speed": spaces.Box(-3.0, 5.0, (2,), np.float32),
            "wheels": spaces.MultiDiscrete([3, 2]),
        }
    ),
}


def sample(space, number, seed=0):
    space.seed(seed)
    return stack(space, [space.sample() for _ in range(number)])


def stack(space, samples):
    if isinstance(space, spaces.Dict):
        return {key: stack(part, [s[key] for s in samples]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stack(part, [s[i] for s in samples]) for i, part in enumerate(space.spaces))
    return np.stack([np.asarray(s) for s in samples])


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("conv_channels", [(5, 7, 4), (6,), ()])
@pytest.mark.parametrize("name", SPACES)
def test_numpys_network_equals_torchs(name, conv_channels, layer_norm):
    space = SPACES[name]
    network = make_network(space, ACTIONS, (16, 8), layer_norm, 1, conv_channels)
    x = features(space, sample(space, 6))
    wanted = network(x).detach().numpy()
    got = FrozenNetwork(to_arrays(network))(x.numpy())
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    assert wanted.std() > 0


def test_the_convolutions_are_torchs_own_on_scaled_pictures():
    """The same layers as one Sequential, on pictures brought to -1..1 by hand."""
    space = picture(10, 13, 3)
    network = make_network(space, ACTIONS, (8,), False, 0, (4, 6))
    obs = sample(space, 5)
    first, second = network.conv[0]
    x = torch.from_numpy(obs.transpose(0, 3, 1, 2) / 127.5 - 1.0).float()
    seen = torch.relu(second(torch.relu(first(x)))).permute(0, 2, 3, 1).flatten(1)
    hidden = torch.relu(network.body[0](seen))
    a = network.advantage(hidden)
    wanted = network.value(hidden) + a - a.mean(1, keepdim=True)
    torch.testing.assert_close(network(features(space, obs)), wanted)
    assert first.stride == second.stride == (2, 2)


def test_pictures_are_found_where_they_lie():
    assert images_in(SPACES["dict"]) == [
        Image(0, 9, 9, 3, False),
        Image(243, 6, 5, 1, False),
        Image(243 + 30 + 4, 8, 8, 3, True),
    ]
    ram, depth, floats = picture(128), spaces.Box(0, 100, (4, 4), np.uint8), spaces.Box(0, 255, (4, 4), np.float32)
    assert images_in(spaces.Tuple([ram, depth, floats])) == []


def test_channels_first_and_last_are_the_same_picture():
    last, first = picture(6, 7, 3), picture(3, 6, 7)
    obs = sample(last, 4)
    values = [
        make_network(space, ACTIONS, (8,), True, 3, (4,))(features(space, o))
        for space, o in ((last, obs), (first, obs.transpose(0, 3, 1, 2)))
    ]
    torch.testing.assert_close(*values)


class Lights(gym.Env):
    """A dark picture with one bright corner: action 1 is right where it is on the left, action 0 on the right."""

    observation_space = picture(8, 8, 1)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = bool(self.np_random.integers(2))
        look = np.zeros((8, 8, 1), np.uint8)
        look[self.np_random.integers(8), 0 if self.left else 7] = 255
        self.look = look
        return look, {}

    def step(self, action):
        return self.look, float(action == self.left), True, False, {}


def test_learning_from_pictures(tmp_path):
    ape = agent(tmp_path, Lights, conv_channels=(8,), samples_per_insert=32.0, averaging_rate=1.0)
    before = evaluate(ape)
    ape.learn(500)
    assert evaluate(ape) == 1.0 > before
    assert ape.memory.all_experiences().obs.dtype == np.uint8


def evaluate(ape):
    obs = np.stack([Lights().reset(seed=seed)[0] for seed in range(50)])
    lefts = obs[:, :, 0, 0].any(1)
    return float((ape.predict(obs)[0] == lefts).mean())


# Noise


def noisy(sigma=0.5, layer_norm=True):
    return make_network(spaces.Box(-1.0, 1.0, (4,), np.float32), ACTIONS, (8, 6), layer_norm, 0, noisy_sigma=sigma)


def test_noise_is_the_papers():
    """f(x) = sign(x) sqrt(abs(x)): the square of its absolute value is half normal; weights get outer products."""
    draws = [draw_noise(np.random.default_rng(i), [(3, 2)])[0] for i in range(4_000)]
    values = np.concatenate([np.concatenate(draw) for draw in draws])
    assert np.mean(values) == pytest.approx(0, abs=0.03)
    assert np.mean(values**2) == pytest.approx(np.sqrt(2 / np.pi), abs=0.02)
    assert np.mean(values**4) == pytest.approx(1, abs=0.04)
    one = np.random.default_rng(0).standard_normal(2, np.float32)
    np.testing.assert_allclose(draws[0].inputs, np.sign(one) * np.sqrt(abs(one)))


def test_first_weights_and_spreads_are_the_papers():
    network = noisy(0.5)
    for layer, sigma in zip([*network.body, network.value, network.advantage], network.sigmas, strict=True):
        inputs = layer.in_features
        assert abs(layer.weight).max() <= 1 / np.sqrt(inputs)
        assert (sigma.weight == np.float32(0.5 / np.sqrt(inputs))).all()
        assert (sigma.bias == np.float32(0.5 / np.sqrt(inputs))).all()


@pytest.mark.parametrize("layer_norm", [True, False])
def test_actors_perturb_as_torch_does(layer_norm):
    network = noisy(layer_norm=layer_norm)
    x = np.random.default_rng(1).uniform(-1, 1, (5, 4)).astype(np.float32)
    got = FrozenNetwork(perturbed(to_arrays(network), np.random.default_rng(7)))(x)
    noise = draw_noise(np.random.default_rng(7), network.noise_shapes)
    wanted = network(torch.from_numpy(x), noise).detach().numpy()
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    assert abs(wanted - network(torch.from_numpy(x)).detach().numpy()).max() > 0.01


def test_without_noise_the_means_count():
    x = torch.rand(5, 4)
    torch.testing.assert_close(noisy(0.5)(x), noisy(None)(x))
    torch.testing.assert_close(
        noisy(0.0)(x, draw_noise(np.random.default_rng(0), noisy().noise_shapes)), noisy(None)(x)
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_the_spread_has_gradient(seed):
    """d Q / d sigma = d Q / d weight times the noise: checked by a small step of every sigma of one layer."""
    network = noisy().double()
    noise = [
        type(n)(*(part.astype(float) for part in n))
        for n in draw_noise(np.random.default_rng(seed), network.noise_shapes)
    ]
    x = torch.rand(3, 4, dtype=torch.float64)
    value = network(x, noise).sum()
    value.backward()
    sigma = network.sigmas[2].weight
    step = 1e-6
    with torch.no_grad():
        sigma += step
    assert (network(x, noise).sum() - value).item() / step == pytest.approx(sigma.grad.sum().item(), rel=1e-3, abs=1e-5)


def test_the_three_uses_of_an_update_have_noise_of_their_own():
    space = spaces.Box(-1.0, 1.0, (4,), np.float32)
    from agents.apex import ApeXConfig

    config = ApeXConfig(exploration="noisy", hidden_sizes=(8, 6))
    learner = Learner(noisy(), space, PrioritizedMemory(space, ACTIONS, 8), config, np.random.default_rng(3))
    obs = np.random.default_rng(0).uniform(-1, 1, (2, 6, 4)).astype(np.float32)
    windows = Transition(obs[0], np.zeros(6, int), np.ones(6), np.full(6, 0.9), obs[1])
    error, _ = learner._errors(windows)
    rng = np.random.default_rng(3)
    x, after = map(torch.from_numpy, obs)
    q_next = learner.network(after, draw_noise(rng, learner.network.noise_shapes))
    q_target = learner.target(after, draw_noise(rng, learner.network.noise_shapes))
    q = learner.network(x, draw_noise(rng, learner.network.noise_shapes))
    wanted = 1 + 0.9 * q_target.gather(1, q_next.argmax(1, keepdim=True))[:, 0] - q[:, 0]
    torch.testing.assert_close(error, wanted.float())


def test_noisy_actors_act_greedily_with_new_noise_in_each_block(tmp_path):
    config = small(tmp_path, num_actors=1, exploration="noisy", block_steps=6)
    space = gym.spec("CartPole-v1").make().observation_space
    network = make_network(space, spaces.Discrete(2), (16,), True, 0, noisy_sigma=0.5)
    actor = build_actor(ActorPlan(resolve("CartPole-v1"), config, 0, 0, 0), Weights(1, to_arrays(network)))
    assert (actor.epsilons == 0).all()
    channel = InlineChannel(Mailbox())
    probe = np.random.default_rng(0).uniform(-0.1, 0.1, (3, 4)).astype(np.float32)
    seen = []
    for _ in range(3):
        actor.collect(channel)
        np.testing.assert_array_equal(actor.buffer.action, actor.buffer.q[-7:-1].argmax(2))
        seen.append(actor.values(probe))
    assert not np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[1], seen[2])


def test_noisy_training_repeats_over_save_and_load(tmp_path):
    from agents.apex import ApeX

    whole = agent(tmp_path / "a", exploration="noisy").learn(300).learn(300)
    agent(tmp_path / "b", exploration="noisy").learn(300).save(tmp_path / "b.apex")
    back = ApeX.load(tmp_path / "b.apex")
    back.resume_in(tmp_path / "c")
    np.testing.assert_array_equal(parameters(whole), parameters(back.learn(300)))


def test_evaluations_are_without_noise(tmp_path):
    ape = agent(tmp_path, exploration="noisy")
    obs = np.zeros((5, 4), np.float32)
    np.testing.assert_array_equal(ape.predict(obs)[0], ape.predict(obs)[0])


def test_pictures_and_noise_lie_in_the_flat_vector():
    network = make_network(SPACES["dict"], ACTIONS, (8,), True, 0, (4,), 0.5)
    count = sum(p.numel() for p in network.parameters())
    x = features(SPACES["dict"], sample(SPACES["dict"], 3))
    before = network(x).detach()
    flat = FlatParameters(network)
    assert len(flat.vector) == count
    torch.testing.assert_close(network(x), before)
    network(x, draw_noise(np.random.default_rng(0), network.noise_shapes)).sum().backward()
    assert (flat.gradient != 0).float().mean() > 0.5
    with torch.no_grad():
        flat.vector.zero_()
    assert (network(x) == 0).all()
