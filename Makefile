# What a person needs: `make serve` and `make test`. Both set everything up first, in this folder.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := src tests tools

.PHONY: serve setup lint check test fuzz soak bench bench-compaction conformance docs lock clean

serve:  ## Serve on 127.0.0.1:11435, with ARGS='--port N' and the like
	@$(PYTHON) tools/setup runtime
	@exec $(BIN)/diglot serve $(ARGS)

setup:  ## Everything for development, into .tools/ and .venv/
	@$(PYTHON) tools/setup dev

lint: setup  ## What is seen without running anything
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

check: lint  ## The fast gate
	$(BIN)/pytest -q -n0 tests/house

test: lint  ## All tests, with ARGS='-k name' and the like
	$(BIN)/pytest -n2 $(ARGS)

fuzz: setup  ## Try inputs by the million, for MINUTES=10
	$(BIN)/python -m tools.fuzz --minutes $(or $(MINUTES),10)

soak: setup  ## Use a server with real models, and kill its engines, for MINUTES=10; nothing may grow
	$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),10) $(ARGS)

bench: setup  ## Measure against the engine alone
	$(BIN)/python -m bench $(ARGS)

conformance: setup  ## The openresponses suite from a checkout, SUITE=DIR, with ARGS='--filter id' and the like
	$(BIN)/python -m tools.conformance $(SUITE) $(ARGS)

bench-compaction: setup  ## Measure compaction beside two other ways; MODEL=name, ARGS=--quick
	$(BIN)/python -m bench.compaction $(if $(MODEL),--model $(MODEL)) $(ARGS)

docs: setup  ## Write anew the pages that are made from the code
	$(BIN)/python -m tools.compat_page
	$(BIN)/diglot settings-page > docs/settings.md

lock:  ## Resolve the requirements anew; ARGS=--upgrade takes newer versions
	@$(PYTHON) tools/setup lock $(ARGS)

clean:  ## Forget everything that setup made
	rm -rf .tools .venv .fuzz dist tests/clients/js/node_modules tests/codex/node_modules .*_cache
