"""Modules that are loaded late: not before something looks into them, and whole then."""

from __future__ import annotations

import subprocess
import sys


def _says(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_module_is_loaded_with_the_first_look_into_it():
    begin = (
        "import sys\nfrom isolux.cli.lazy_imports import install_lazy_modules\n"
        "install_lazy_modules('numpy.f2py')\n"
    )
    loaded = "print('numpy.f2py.f2py2e' in sys.modules)\n"
    assert _says(f"{begin}import scipy.sparse, scipy.special\n{loaded}") == "False"
    assert _says(f"{begin}import numpy\nnumpy.f2py.__all__\n{loaded}") == "True"
    assert _says("import sys, scipy.sparse\n" + loaded) == "True"  # or there is nothing to put off


def test_a_module_that_is_loaded_or_is_not_there_is_left():
    begin = "import json, sys\nfrom isolux.cli.lazy_imports import install_lazy_modules\n"
    assert _says(
        f"{begin}own = json\ninstall_lazy_modules('json')\nprint(sys.modules['json'] is own)"
    ) == ("True")
    assert (
        _says(f"{begin}install_lazy_modules('nobody')\nprint('nobody' in sys.modules)") == "False"
    )
