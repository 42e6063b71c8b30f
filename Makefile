# make lab     set up .venv and open JupyterLab on your own copy of the notebooks, in work/
# make venv    only the set-up
# make test    set up .venv and run every test and every notebook
# make test-classroom   the teacher's side (needs bubblewrap: sudo apt install bubblewrap)
#
# LAB_ARGS="--no-browser --port 8899"   goes to JupyterLab
# CUDA=13                               the CUDA 13 packages instead of 12 (driver 580 or newer); CUDA=none for none
# PYTHON=python3.12                     the interpreter that makes .venv
# make test PY=python3                  test with that interpreter, and set up nothing
# PYTEST_ARGS="-k capture"              goes to pytest
#
# Without make (Windows): python tools/setup_env.py, and then .venv\Scripts\labkit lab

PYTHON ?= python3
CUDA ?= auto
SETUP = $(PYTHON) tools/setup_env.py --cuda "$(CUDA)"
VENV_PY = .venv/bin/python

.PHONY: lab venv test test-classroom python help

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

lab: python
	@$(SETUP) --extras lab
	@$(VENV_PY) -m labkit lab $(LAB_ARGS)

venv: python
	@$(SETUP) --extras lab

python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "There is no '$(PYTHON)' here. On Debian or Ubuntu: sudo apt install python3 python3-venv" >&2; exit 1; }

# Nothing in the home folder of whoever runs the tests is read or written.
test test-classroom: HOME_FOR_TESTS = $(CURDIR)/.test-home
test test-classroom: export JUPYTER_CONFIG_DIR = $(HOME_FOR_TESTS)/jupyter/config
test test-classroom: export JUPYTER_DATA_DIR = $(HOME_FOR_TESTS)/jupyter/data
test test-classroom: export JUPYTER_RUNTIME_DIR = $(HOME_FOR_TESTS)/jupyter/runtime
test test-classroom: export IPYTHONDIR = $(HOME_FOR_TESTS)/ipython
test test-classroom: export MPLCONFIGDIR = $(HOME_FOR_TESTS)/matplotlib
test test-classroom: export CUPY_CACHE_DIR = $(HOME_FOR_TESTS)/cupy
test test-classroom: export CUDA_CACHE_PATH = $(HOME_FOR_TESTS)/cuda
PYTEST = -m pytest --nbval-lax --nbval-current-env -n2 --dist loadfile --ignore=tests/classroom tests notebooks $(PYTEST_ARGS)
PYTEST_CLASSROOM = -m pytest -n2 --dist loadfile tests/classroom $(PYTEST_ARGS)

ifdef PY
test:
	@PYTHONPATH="$(CURDIR)" $(PY) $(PYTEST)
test-classroom:
	@PYTHONPATH="$(CURDIR)" $(PY) $(PYTEST_CLASSROOM)
else
test: python
	@$(SETUP) --extras lab,dev --nvrtc
	@$(VENV_PY) $(PYTEST)
test-classroom: python
	@$(SETUP) --extras lab,dev,classroom --nvrtc
	@$(VENV_PY) $(PYTEST_CLASSROOM)
endif
