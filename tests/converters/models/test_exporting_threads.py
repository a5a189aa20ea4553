"""Torch modules that several threads export, or a process that was forked meanwhile."""

import logging
import multiprocessing
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from converters import module_to_onnx_text


def test_threads_export_one_at_a_time():
    """As in a study with ``n_jobs``; torch's exporters refuse a second thread."""
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.BatchNorm1d(4)).train()
    alone, filters, tracing = module_to_onnx_text(module, (1, 4)), list(warnings.filters), torch.jit.is_tracing
    with ThreadPoolExecutor(4) as threads:
        texts = list(threads.map(module_to_onnx_text, [module] * 16, [(1, 4)] * 16))
    assert set(texts) == {alone}
    assert all(part.training for part in module.modules())
    assert (logging.root.manager.disable, warnings.filters, torch.jit.is_tracing) == (logging.NOTSET, filters, tracing)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")
def test_a_process_that_is_forked_during_an_export_can_export():
    module_to_onnx_text(nn.ReLU(), (1, 4))  # imports what it needs; a fork during an import would wait for ever
    started = threading.Event()

    class Slow(nn.Module):
        def forward(self, x):
            started.set()
            time.sleep(0.1)
            return x

    thread = threading.Thread(target=module_to_onnx_text, args=(Slow(), (1, 4)))
    thread.start()
    started.wait()
    process = multiprocessing.get_context("fork").Process(target=module_to_onnx_text, args=(nn.ReLU(), (1, 4)))
    process.start()
    process.join(30)
    process.kill()
    thread.join()
    assert process.exitcode == 0
