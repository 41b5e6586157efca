"""Tensors that claim to be on a GPU and are computed on the CPU.

What a GPU would refuse is refused here as well: an operation on tensors of both devices. So code for GPUs can be
tested without one, except for its speed and its kernels' numerics.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

GPU = torch.device("cuda:0")
FREE_BYTES = 2**30


class OnGpu(torch.Tensor):  # type: ignore[misc, unused-ignore]
    """A tensor of the pretended GPU; `inside` holds its numbers."""

    inside: torch.Tensor

    @staticmethod
    def __new__(cls, inside: torch.Tensor) -> "OnGpu":
        # To PyTorch itself it is on the device "meta", which has no memory and needs no driver.
        made: OnGpu = torch.Tensor._make_wrapper_subclass(
            cls,
            inside.size(),
            strides=inside.stride(),
            storage_offset=inside.storage_offset(),
            dtype=inside.dtype,
            device="meta",
        )
        made.inside = inside
        return made

    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """See `_compute`."""
        return _compute(func, args, kwargs or {})

    def tolist(self) -> Any:
        """As for any tensor."""
        return self.inside.tolist()


class _Pretending(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Catches functions that create tensors without taking any."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _compute(func, args, kwargs or {})


@contextmanager
def pretended_gpu(patch: pytest.MonkeyPatch) -> Iterator[Callable[[torch.nn.Module], Any]]:
    """Yields a function that puts a copy of a model onto the GPU, while the block runs."""
    make = torch.tensor

    def tensor(numbers: Any, *, device: Any = None, **options: Any) -> torch.Tensor:
        made = make(numbers, **options)
        return OnGpu(made) if device is not None and torch.device(device) == GPU else made

    patch.setattr(torch, "tensor", tensor)
    patch.setattr(torch, "inference_mode", torch.no_grad)  # whose tensors can't be replaced
    patch.setattr(torch.cuda, "_lazy_init", lambda: None)
    patch.setattr(torch.cuda, "mem_get_info", lambda _: (FREE_BYTES, FREE_BYTES))
    with _Pretending():
        yield _moved


def _moved(model: torch.nn.Module) -> Any:
    moved = copy.deepcopy(model)
    for module in moved.modules():
        for name, weights in module._parameters.items():
            if weights is not None:
                module._parameters[name] = torch.nn.Parameter(OnGpu(weights.data), requires_grad=False)
        for name, values in module._buffers.items():
            if values is not None:
                module._buffers[name] = OnGpu(values)
    return moved


def _compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carries an operation out on the CPU; its result claims the device that it would have."""
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    here, there = ([each for each in tensors if isinstance(each, OnGpu) == is_there] for is_there in (False, True))
    if there and any(each.dim() for each in here) and "copy" not in str(func):
        raise RuntimeError(f"{func} is asked for tensors on the CPU and on the GPU")
    asked = kwargs.get("device")
    on_gpu = bool(there) if asked is None else torch.device(asked).type != "cpu"
    options = kwargs if asked is None else {**kwargs, "device": torch.device("cpu")}
    with torch._C._DisableTorchDispatch():
        done = func(*tree_map(_inside, args), **tree_map(_inside, options))
    if func._schema.is_mutable and args and done is _inside(args[0]):
        return args[0]
    return tree_map(lambda each: OnGpu(each) if on_gpu and isinstance(each, torch.Tensor) else each, done)


def _inside(value: Any) -> Any:
    return value.inside if isinstance(value, OnGpu) else value
