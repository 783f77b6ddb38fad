"""The parts that `gym_custom.single` and `gym_custom.vector` are made of."""
