"""In front of the PYTHONPATH of every task under `srun --checkpoint-attach=torch`: has cairn.torch.unmodified told when torch has been imported, and
runs the site's own sitecustomize, which this one hides.

Runs in every Python of the step, those that never see torch too: so it imports next to nothing, takes its own folder out of sys.path, and lets no
error of its own through.
"""
import importlib.util
import os
import sys

HERE = os.path.dirname(__file__)


class AfterTorch:
    """A finder of modules: torch is found as ever, and `watch` is called at the end of its import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            def exec_module(module):
                del spec.loader.exec_module  # from here on it is the loader's own again
                spec.loader.exec_module(module)
                watch()

            spec.loader.exec_module = exec_module
        return spec


def watch():
    try:
        sys.path.append(os.path.dirname(HERE))  # behind all others: a package `cairn` of the program's own environment comes first
        from cairn.torch import unmodified

        unmodified.watch()
    except Exception as error:
        if os.environ.get("SLURM_PROCID", "0") == "0":
            print(f"cairn: NOT PROTECTED: --checkpoint-attach=torch: {error}", file=sys.stderr)


def chain():
    own = sys.modules.pop("sitecustomize")
    if importlib.util.find_spec("sitecustomize") is not None:
        import sitecustomize  # noqa: F401
    else:
        sys.modules["sitecustomize"] = own  # the import of it, which is still under way, looks it up at its end


sys.path[:] = [path for path in sys.path if path != HERE]
if os.environ.get("SLURM_CAIRN_ATTACH") == "torch":
    sys.meta_path.insert(0, AfterTorch())
chain()
