import subprocess
import sys
from types import FunctionType, ModuleType

import dpp_sample

FUNCTIONS = {
    "greedy_map",
    "iterated_select",
    "log_esp",
    "make_pool",
    "pareto",
    "pool_bias",
    "select",
}
RECORDS = {"KDPP", "MapResult", "ParetoPoint", "Pool", "Selection", "Weights"}
RECORDS |= {"PoolWarning", "RankError"}
MODULES = {"baselines", "clusters", "features", "metrics", "sources"}


def test_the_public_names():
    for name in FUNCTIONS:
        assert isinstance(getattr(dpp_sample, name), FunctionType), f"{name} is hidden"
    for name in RECORDS:
        assert isinstance(getattr(dpp_sample, name), type)
    for name in MODULES:
        assert isinstance(getattr(dpp_sample, name), ModuleType)
    assert set(dir(dpp_sample)) >= FUNCTIONS | RECORDS | MODULES
    assert not hasattr(dpp_sample, "nothing")


def test_importing_loads_little():
    """What takes half a second or more waits for its first use."""
    code = (
        "import sys, dpp_sample; "
        "print([m for m in ('sklearn', 'scipy.linalg', 'torch', 'pandas') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
