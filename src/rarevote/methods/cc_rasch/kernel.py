"""The fused CC-Rasch pass over a run of tasks.

For every task: its posterior at the parameters that came in, one Newton step on its difficulties, and with the new
difficulties its share of what the workers need, a gradient and a curvature per (worker, class).

Everything is in odds, ``exp(alpha - beta) = odds[worker, class] * exp(-h[task, class])``, so that an annotation
costs a multiplication and a division per class but no ``exp``; the likelihood of a task is a running product that
needs one ``log`` per class. The sign of a stored odd says whether the vote was for that class, which spares every
branch. Tasks are taken in blocks whose work arrays stay in the first-level cache, and each stage is a loop over
contiguous memory that the compiler vectorises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log
from typing import Any

import numpy as np

from rarevote.kernels.compile import kernel
from rarevote.kernels.fast_math import exp_fast, log_fast
from rarevote.kernels.posterior import posterior_of_block
from rarevote.methods.cc_rasch.plain import CLASS_DIFFICULTY, NO_DIFFICULTY, SHARED_DIFFICULTY

_BLOCK = 64
_SMALLEST_PRODUCT = 1e-150
# Up to this many classes the number is compiled in, which unrolls the loops over classes.
_MAX_UNROLLED = 5


def fused_pass(task_ptr: Any, worker: Any, label: Any, gold: Any, odds: Any, *rest: Any) -> float:
    """The compiled pass. See ``pass_over_tasks`` below for its arguments."""
    n_classes = odds.shape[1]
    compiled = _fused_pass(n_classes if 2 <= n_classes <= _MAX_UNROLLED else 0)
    return compiled(task_ptr, worker, label, gold, odds, *rest)


@cache
def _fused_pass(unrolled: int) -> Callable[..., float]:
    @kernel
    def pass_over_tasks(  # type: ignore[no-untyped-def]
        task_ptr,  # int64 (n + 1), absolute positions into worker and label
        worker,  # unsigned (N)
        label,  # unsigned (N)
        gold,  # int32 (n), the known class or -1; or of size 0
        odds,  # (m, K), exp(s_k + g_rk)
        log_prior,  # (K)
        shift,  # (D), added to the difficulties that come in
        ridge,  # (D), 2 lambda_beta
        pull,  # (D), constant part of the difficulty's gradient, from the penalty on the mean
        stiffness,  # (D), curvature of the penalties
        damping,  # 0: Newton's curvature, >= 1: that many times its upper bound
        refresh,  # whether to recompute the posterior
        mode,  # NO_DIFFICULTY, SHARED_DIFFICULTY or CLASS_DIFFICULTY
        posterior_in,  # (n, K)
        difficulty_in,  # (n, D)
        posterior_out,  # (n, K)
        difficulty_out,  # (n, D)
        of_workers,  # (m, 2, K), added to: gradient and curvature, side by side because they are touched together
        scalars,  # (2), added to: log likelihood (or its bound), squared norm of the difficulties' gradient
        squares,  # (D), added to: sum of h**2 as it came in
        moved,  # (D), added to: sum of the new h
        class_mass,  # (K), added to: sum of the posterior
    ):
        K = unrolled if unrolled > 0 else odds.shape[1]
        n = task_ptr.shape[0] - 1
        log_others = log(K - 1.0) if K > 2 else 0.0
        most = 0
        for begin in range(0, n, _BLOCK):
            most = max(most, task_ptr[min(begin + _BLOCK, n)] - task_ptr[begin])
        # One entry per (annotation, class) of a block.
        signed_odds = np.empty(most * K)
        first_cell = np.empty(most, np.int64)  # of the task of each annotation
        likelihood = np.empty(most * K)
        residual = np.empty(most * K)
        weight = np.empty(most * K)
        # One entry per (task, class) of a block.
        h = np.empty(_BLOCK * K)
        ease = np.empty(_BLOCK * K)
        product = np.empty(_BLOCK * K)
        taken_out = np.zeros(_BLOCK * K)
        residuals = np.empty(_BLOCK * K)
        weights = np.empty(_BLOCK * K)
        q = np.empty(_BLOCK * K)
        top = np.empty(_BLOCK)
        total = np.empty(_BLOCK)
        slope = np.empty(_BLOCK * K)
        moved_to = np.empty(_BLOCK * K)
        # What differs by class alone, laid out like a block, so that loops over cells need no index arithmetic.
        shift_of = np.zeros(_BLOCK * K)
        ridge_of = np.zeros(_BLOCK * K)
        pull_of = np.zeros(_BLOCK * K)
        stiffness_of = np.zeros(_BLOCK * K)
        if mode != NO_DIFFICULTY:
            for cell in range(_BLOCK * K):
                d = cell % K if mode == CLASS_DIFFICULTY else 0
                shift_of[cell] = shift[d]
                ridge_of[cell] = ridge[d]
                pull_of[cell] = pull[d]
                stiffness_of[cell] = stiffness[d]
        q_in = posterior_in.reshape(-1)
        q_out = posterior_out.reshape(-1)
        h_in = difficulty_in.reshape(-1)
        h_out = difficulty_out.reshape(-1)
        change = 0.0
        loglik = 0.0
        norm = 0.0

        for begin in range(0, n, _BLOCK):
            end = min(begin + _BLOCK, n)
            size = end - begin
            cells = size * K
            base = task_ptr[begin]
            votes = task_ptr[end] - base
            terms = votes * K

            if mode == CLASS_DIFFICULTY:
                for cell in range(cells):
                    h[cell] = h_in[begin * K + cell] + shift_of[cell]
            elif mode == SHARED_DIFFICULTY:
                for i in range(size):
                    for k in range(K):
                        h[i * K + k] = h_in[begin + i] + shift[0]
            else:
                for cell in range(cells):
                    h[cell] = 0.0
            for cell in range(cells):
                ease[cell] = exp_fast(-h[cell])

            # Tasks have few votes, and how many is hard to predict: only this loop goes by task, the others by vote.
            for i in range(size):
                for a in range(task_ptr[begin + i] - base, task_ptr[begin + i + 1] - base):
                    first_cell[a] = i * K
            for a in range(votes):
                r = worker[base + a]
                y = label[base + a]
                c = first_cell[a]
                for k in range(K):
                    o = odds[r, k] * ease[c + k]
                    signed_odds[a * K + k] = o if y == k else -o
            for t in range(terms):
                o = signed_odds[t]
                x = abs(o)
                wrong = 1.0 / (1.0 + x)
                right = x * wrong
                likelihood[t] = right if o > 0.0 else wrong
                residual[t] = wrong if o > 0.0 else -right
                w = right * wrong
                weight[t] = w if damping == 0.0 else 0.25 * damping
            for cell in range(cells):
                product[cell] = 1.0
                taken_out[cell] = 0.0
                residuals[cell] = 0.0
                weights[cell] = 0.0
            for a in range(votes):
                c = first_cell[a]
                for k in range(K):
                    t = a * K + k
                    running = product[c + k] * likelihood[t]
                    if running < _SMALLEST_PRODUCT:
                        taken_out[c + k] += log(running)
                        running = 1.0
                    product[c + k] = running
                    residuals[c + k] += residual[t]
                    weights[c + k] += weight[t]

            # Log joint probability of the votes and each class.
            for cell in range(cells):
                product[cell] = log_fast(product[cell]) + taken_out[cell]
            for i in range(size):
                n_votes = task_ptr[begin + i + 1] - task_ptr[begin + i]
                for k in range(K):
                    product[i * K + k] += log_prior[k] - n_votes * log_others
            if log_others != 0.0:
                for a in range(votes):
                    product[first_cell[a] + label[base + a]] += log_others

            if refresh:
                posterior_of_block(product, gold, begin, size, K, q, top, total)
                for i in range(size):
                    loglik += top[i]
            else:
                for cell in range(cells):
                    known_q = q_in[begin * K + cell]
                    q[cell] = known_q
                    if known_q > 0.0:
                        loglik += known_q * (product[cell] - log(known_q))
            for cell in range(cells):
                change = max(change, abs(q[cell] - q_in[begin * K + cell]))
            for cell in range(cells):
                q_out[begin * K + cell] = q[cell]
            for k in range(K):
                mass = 0.0
                for i in range(size):
                    mass += q[i * K + k]
                class_mass[k] += mass

            # Newton on the difficulties; ease becomes the factor by which the odds change.
            if mode == SHARED_DIFFICULTY:
                # One difficulty for all classes: every class carries the sum.
                for i in range(size):
                    residual_sum = 0.0
                    weight_sum = 0.0
                    for k in range(K):
                        residual_sum += q[i * K + k] * residuals[i * K + k]
                        weight_sum += q[i * K + k] * weights[i * K + k]
                    for k in range(K):
                        residuals[i * K + k] = residual_sum
                        weights[i * K + k] = weight_sum
            elif mode == CLASS_DIFFICULTY:
                for cell in range(cells):
                    residuals[cell] *= q[cell]
                    weights[cell] *= q[cell]
            if mode != NO_DIFFICULTY:
                for cell in range(cells):
                    s = pull_of[cell] - residuals[cell] - ridge_of[cell] * h[cell]
                    step = s / (weights[cell] + stiffness_of[cell])
                    slope[cell] = s
                    moved_to[cell] = h[cell] + step
                    ease[cell] = exp_fast(-step)
                columns = K if mode == CLASS_DIFFICULTY else 1
                for k in range(columns):
                    slope_sum = 0.0
                    square_sum = 0.0
                    moved_sum = 0.0
                    for i in range(size):
                        c = i * K + k
                        slope_sum += slope[c] * slope[c]
                        square_sum += h[c] * h[c]
                        moved_sum += moved_to[c]
                    norm += slope_sum
                    squares[k] += square_sum
                    moved[k] += moved_sum
                if mode == CLASS_DIFFICULTY:
                    for cell in range(cells):
                        h_out[begin * K + cell] = moved_to[cell]
                else:
                    for i in range(size):
                        h_out[begin + i] = moved_to[i * K]
                for a in range(votes):
                    c = first_cell[a]
                    for k in range(K):
                        signed_odds[a * K + k] *= ease[c + k]

            for a in range(votes):
                c = first_cell[a]
                for k in range(K):
                    likelihood[a * K + k] = q[c + k]
            for t in range(terms):
                o = signed_odds[t]
                x = abs(o)
                wrong = 1.0 / (1.0 + x)
                right = x * wrong
                residual[t] = likelihood[t] * (wrong if o > 0.0 else -right)
                w = right * wrong
                weight[t] = likelihood[t] * (w if damping == 0.0 else 0.25 * damping)
            for a in range(votes):
                r = worker[base + a]
                t = a * K
                for k in range(K):
                    of_workers[r, 0, k] += residual[t + k]
                for k in range(K):
                    of_workers[r, 1, k] += weight[t + k]

        scalars[0] += loglik
        scalars[1] += norm
        return change

    return pass_over_tasks
