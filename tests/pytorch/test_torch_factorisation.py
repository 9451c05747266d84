"""Inverses by products, as a GPU has them, on any device."""

import pytest
import torch

from variegate.torch.dense import factor_cholesky, invert_by_product


@pytest.mark.parametrize("n_items", [1, 5, 64, 65, 100, 129, 300, 520])
def test_inverse_by_products(device, n_items):
    generator = torch.Generator().manual_seed(n_items)
    F = torch.randn(2, n_items, n_items + 5, generator=generator, dtype=torch.float64)
    A = (F @ F.mT / n_items + torch.eye(n_items)).to(device)
    M = A.clone()
    log_det, definite = factor_cholesky(M, 1e-8)
    invert_by_product(M, torch.full_like(M, torch.nan))
    assert definite.all()
    torch.testing.assert_close(log_det, torch.logdet(A))
    torch.testing.assert_close(M, torch.linalg.inv(A), rtol=1e-9, atol=1e-11)
