# Two commands: `make demo` and `make test`. Both make .venv first if it is missing.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 2

.PHONY: demo test test-slow check format docs clean

$(READY): setup.py constraints.txt
	@echo "Installing into .venv; this takes a few minutes the first time."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,test,dev,docs]"
	touch $(READY)

demo: $(READY)
	$(BIN)/python scripts/compare_baselines.py --quick

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not serial"
	$(BIN)/python -m pytest -m serial

test-slow: $(READY)
	$(BIN)/python -m pytest --slow -n $(WORKERS) -m "slow and not serial" --timeout 1800
	$(BIN)/python -m pytest --slow -m "slow and serial" --timeout 1800

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python docs/environment_pages.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The pages are in docs/_build/html/index.html"

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist *.egg-info
