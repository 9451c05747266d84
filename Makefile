# Each target makes .venv if it is missing and installs what it needs; it installs
# again only when pyproject.toml has changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The demo runs on a part of what the tests need, and installs no more.
DEMO   := $(VENV)/.demo-ready
# Frameworks of retrieval are large, and what they need need not go with the rest.
FRAMEWORKS := .venv-integrations
# PyTorch brings gigabytes of CUDA libraries, unless its index of CPU builds is asked:
# make test-torch PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
PYTORCH := .venv-torch
TORCH   ?= torch==2.13.0
# The studio's page is tried in the Chromium that is installed; none is downloaded.
BROWSER := .venv-browser
OUT    ?= out
# Markers of pyproject.toml; each has a target of its own, and 'make test' leaves it out.
MARKERS := cluster docs faults fuzz paper

.PHONY: demo test test-all test-slow test-versions test-integrations test-torch test-gpu test-browser which lint format bench reproduce-documents reproduce-video docs pictures wheel clean $(MARKERS:%=test-%)

demo: $(DEMO)  ## the paper's synthetic experiment in under two minutes: table and figures
	$(BIN)/python -m paper synthetic --quick --out $(OUT)/demo

# make reproduce-documents DATA=DIR; DATA is looked for as python -m paper does without.
reproduce-documents reproduce-video: reproduce-%: $(READY)  ## the paper's tables
	$(BIN)/python -m paper $* $(if $(DATA),--data $(DATA)) --out $(OUT)/$*

# One BLAS thread a test process: more only fight over the cores.  Half as many processes
# again as cores, since some tests wait for a process that they have killed.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --dist worksteal \
    -n $$($(BIN)/python -c 'import os; print(max(1, os.cpu_count() * 3 // 2))')

test: which lint  ## lint, types, and every test without a marker
	$(PYTEST) --durations=60 -m "not slow $(MARKERS:%=and not %)"

$(MARKERS:%=test-%): test-%: $(READY)  ## the tests with this marker
	$(PYTEST) --durations=60 -m "$* and not slow" $$(grep -rl --include=*.py 'mark\.$*' tests paper/tests)

test-slow: $(READY)  ## the checks that take minutes, and 50 random kills of a cluster
	$(BIN)/python -m pytest -m slow
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.cluster_faults --runs 50 \
	    --out $(OUT)/cluster-faults

test-all: test $(MARKERS:%=test-%) test-browser test-integrations test-torch test-slow

test-versions: $(READY)  ## the tests on every Python, with the least and the newest versions
	$(BIN)/python scripts/versions.py

test-integrations: $(FRAMEWORKS)/.ready  ## pipelines of Haystack, LangChain and LlamaIndex
	OPENBLAS_NUM_THREADS=1 $(FRAMEWORKS)/bin/python -m pytest tests/test_integrations*.py

test-torch: $(PYTORCH)/.ready  ## what is made with PyTorch, on the CPU
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PYTORCH)/bin/python -m pytest -n auto \
	    -m "not slow" tests/pytorch

# On a machine with a GPU, by a Python that has PyTorch for it.
test-gpu:  ## the same on a GPU
	VARIEGATE_DEVICE=cuda PYTHONPATH=src $(PYTHON) -m pytest -m "not slow" tests/pytorch

test-browser: $(BROWSER)/.ready  ## the studio's page in a real browser
	OPENBLAS_NUM_THREADS=1 $(BROWSER)/bin/python -m pytest -n auto tests/browser

which: $(READY)
	@$(BIN)/python -c 'import sys; print("Python", sys.version.split()[0], "in $(VENV)")'

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## learning, sampling and decoding against their peers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m benchmarks --out $(OUT)/bench

docs: $(READY)  ## run every example of the documentation, then build the site
	$(BIN)/python -m pytest tests/test_docs.py
	$(BIN)/python docs/cli_reference.py
	$(BIN)/python -m sphinx -q -W --keep-going -d $(OUT)/doctrees docs $(OUT)/docs
	@echo "the site is in $(OUT)/docs/index.html"

pictures: $(READY)  ## make the pictures of the guides again, by the code they show
	$(BIN)/python docs/pictures.py

wheel: $(READY)
	$(BIN)/python -m build --wheel

# Without compiling: most files that are installed are never imported.
$(DEMO): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): variegate[cli] with NumPy, SciPy, scikit-learn, Numba and matplotlib"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[cli]'
	touch $@

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): variegate[dev], all extras and what tests and checks need"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(DEMO)

$(FRAMEWORKS)/.ready: pyproject.toml
	test -x $(FRAMEWORKS)/bin/python || $(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --editable '.[haystack,langchain,llamaindex,tables,text]' 'hypothesis>=6.100' 'pytest>=8.0'
	touch $@

$(PYTORCH)/.ready: pyproject.toml
	test -x $(PYTORCH)/bin/python || $(PYTHON) -m venv $(PYTORCH)
	$(PYTORCH)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(PYTORCH)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --editable '.[torch,cli,tables]' 'hypothesis>=6.100' 'pytest>=8.0' 'pytest-xdist>=3.5' \
	    'triton>=3.2'
	touch $@

$(BROWSER)/.ready: pyproject.toml
	test -x $(BROWSER)/bin/python || $(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --editable '.[studio,tables,text,video]' 'axe-playwright-python>=0.1.4' \
	    'hypothesis>=6.100' 'playwright>=1.50' 'pytest>=8.0' 'pytest-xdist>=3.5'
	touch $@

clean:
	rm -rf $(VENV) $(FRAMEWORKS) $(PYTORCH) $(BROWSER) $(OUT) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
