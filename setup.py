"""Package metadata: the one place that says what is installed and what it needs."""

from pathlib import Path

from setuptools import find_packages, setup

AGENTS = ["psutil", "torch>=2.2", "stable-baselines3>=2.8", "tqdm", "rich", "tensorboard", "tyro", "cloudpickle"]
JAX = ["jax>=0.4.30"]
RAY = ["ray>=2.40"]
REPORT = ["matplotlib", "scipy>=1.11", "jinja2", "pillow", "imageio-ffmpeg", "tqdm"]
TEST = [
    "pytest",
    "pandas",
    "opencv-python-headless",
    "hypothesis",
    "pytest-xdist",
    "pytest-timeout",
    "moviepy",
    "nbclient",
    "ipykernel",
]
DEV = ["ruff", "mypy"]
DOCS = ["sphinx", "myst-nb", "furo", "sphinx-copybutton"]
BENCH = ["cpprb", "envpool", "numba"]

setup(
    name="gym_custom",
    version="0.1.0",
    description="Write a world's rules once: get a Gymnasium env, a fast vector env equal to it, a JAX env",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    package_dir={"": "."},  # an editable install is then a plain path, which wins over a clone of the same name
    packages=find_packages(include=["gym_custom", "gym_custom.*", "agents", "agents.*"]),
    package_data={"gym_custom": ["py.typed"], "agents": ["py.typed", "apex/presets/*.json", "pretrained/data/*.npz"]},
    install_requires=["gymnasium>=1.2,<2.0", "numpy>=2.1", "pygame-ce>=2.5"],
    extras_require={
        "agents": AGENTS,
        "jax": JAX,
        "ray": RAY,
        "report": REPORT,
        "all": AGENTS + JAX + RAY + REPORT,
        "test": TEST,
        "dev": DEV,
        "docs": DOCS,
        "bench": BENCH,
    },
)
