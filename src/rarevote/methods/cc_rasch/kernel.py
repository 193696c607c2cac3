"""The fused CC-Rasch pass over a range of tasks.

For every task: its posterior at the current parameters, one Newton step on its difficulties, and with the new
difficulties its share of the workers' sums, a gradient and a curvature per (worker, class).

Everything is computed in odds, ``exp(alpha - beta) = odds[worker, class] * exp(-h[task, class])``, so that an
annotation costs a multiplication and a division per class but no ``exp``; the likelihood of a task is a running product
that needs one ``log`` per task. The sign of stored odds says whether the vote was for that class, which avoids all
branches. Votes come in blocks of tasks (:mod:`rarevote.kernels.blocks`): work arrays stay in the first-level cache, and
each stage is a loop over contiguous memory that the compiler vectorises. Sums, maxima and copies are explicit loops:
compiling numba's functions for whole arrays takes as long as everything else. See
:mod:`rarevote.methods.cc_rasch.plain` for the same pass in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.blocks import LANES, MAX_UNROLLED, largest_of, sum_of
from rarevote.kernels.compile import kernel
from rarevote.kernels.fast_math import LIMIT_SINGLE, exp_fast, exp_of
from rarevote.kernels.posterior import SMALLEST_PRODUCT, posterior_of_lanes
from rarevote.methods.cc_rasch.plain import CLASS_DIFFICULTY, MIN_STIFFNESS, NO_DIFFICULTY, SHARED_DIFFICULTY
from rarevote.methods.cc_rasch.solve_kernel import marginal_step, solve_task

# In single precision: a product of likelihoods below this is split. One more vote, with odds within the limits of
# ``exp_single``, does not make it underflow.
_SMALLEST_SINGLE = 1e-20


def fused_pass(shard: Shard, odds: NDArray[np.float64], *rest: Any, mode: int, solves: bool, single: bool) -> float:
    """The compiled pass. See ``pass_over_blocks`` below for its arguments.

    What is constant throughout a fit is a compile-time constant: code for other cases would take as long to compile.

    Args:
        shard: a range of tasks.
        odds: the first argument that is not part of the shard.
        *rest: the other arguments.
        mode: NO_DIFFICULTY, SHARED_DIFFICULTY or CLASS_DIFFICULTY.
        solves: whether passes of this fit can solve tasks; compiling that takes as long as everything else.
        single: whether to compute in single precision; sums are in double precision in any case.
    """
    n_classes = odds.shape[1]
    if single:
        odds = np.clip(odds, np.exp(-LIMIT_SINGLE), np.exp(LIMIT_SINGLE)).astype(np.float32)
    unrolled = n_classes if 2 <= n_classes <= MAX_UNROLLED else 0
    compiled = _fused_pass(unrolled, mode, solves and mode == CLASS_DIFFICULTY, single)
    return compiled(shard.blocks, shard.gold, odds, *rest)


@cache
def _fused_pass(unrolled: int, mode: int, solves: bool, single: bool) -> Callable[..., float]:
    # Bare names in conditions: numba drops branches that such a constant rules out before it infers types.
    has_difficulty, is_shared = mode != NO_DIFFICULTY, mode == SHARED_DIFFICULTY
    work: Any = np.float32 if single else np.float64
    smallest_product = _SMALLEST_SINGLE if single else SMALLEST_PRODUCT

    @kernel
    def pass_over_blocks(  # type: ignore[no-untyped-def]
        blocks,  # the votes
        gold,  # int32 (n), the known class or -1; or of size 0
        odds,  # (m, K), exp(s_k + g_rk)
        log_prior,  # (K)
        shift,  # (D), added to the current difficulties
        penalty,  # on the difficulties
        damping,  # 0: Newton's curvature, >= 1: that many times its upper bound
        refresh,  # whether to recompute the posterior
        settle,  # a task whose posterior would still change by more than this is solved; infinity for one step each
        local,
        out,  # the local parameters, written
        stats,  # added to; the log likelihood is a bound if the posterior is held fixed
    ):
        order, block_ptr, level_ptr, worker, label = blocks
        ridge, pull, stiffness = penalty
        (posterior_in, difficulty_in), (posterior_out, difficulty_out) = local, out
        of_workers, scalars, squares, moved, class_mass = stats
        K = unrolled if unrolled > 0 else odds.shape[1]
        L = LANES
        n = order.shape[0]
        zero, half, one = work(0.0), work(0.5), work(1.0)
        smallest = work(smallest_product)
        of_others = work(1.0 / max(K - 1, 1))  # a wrong vote names any of the other classes
        fixed_weight = work(0.25 * damping)
        prior = np.empty(K, work)
        for k in range(K):
            prior[k] = exp(log_prior[k])
        most = 0
        for block in range(block_ptr.shape[0] - 1):
            most = max(most, level_ptr[block_ptr[block + 1]] - level_ptr[block_ptr[block]])
        # One entry per (vote, class) of a block: level by level, class by class, lane by lane.
        signed_odds = np.empty(most * K, work)
        # One entry per (class, lane). One array each: every way to make an array is compiled separately. Sums and
        # maxima over blocks are also kept per lane: no addition depends on the previous one.
        rows = np.zeros((10, K, L), work)
        h, ease, product, residuals, weights = rows[0], rows[1], rows[2], rows[3], rows[4]
        q_in, q, gradient, curvature, change = rows[5], rows[6], rows[7], rows[8], rows[9]
        sums = np.zeros((4, K, L), np.float64)
        taken_out, mass, square_sum, moved_sum = sums[0], sums[1], sums[2], sums[3]
        # One entry per lane.
        row = np.zeros((1, 5, L), work)[0]
        total, along, bend, lowest, largest_move = row[0], row[1], row[2], row[3], row[4]
        row_sums = np.zeros((1, 4, L), np.float64)[0]
        n_votes, loglik, loglik_before, norm = row_sums[0], row_sums[1], row_sums[2], row_sums[3]
        known = np.empty(L if gold.shape[0] > 0 else 0, np.int64)
        settles = settle < np.inf and refresh and damping == 0.0
        step, here = np.empty(K, np.float64), np.empty((4, K), np.float64)
        n_again = 0

        for block in range(block_ptr.shape[0] - 1):
            places = order[block * L : min((block + 1) * L, n)]
            size = places.shape[0]
            first_level, last_level = block_ptr[block], block_ptr[block + 1]
            first_vote = level_ptr[first_level]

            for i in range(size):
                task = places[i]
                for k in range(K):
                    q_in[k, i] = posterior_in[task, k]
            if has_difficulty:
                for i in range(size):
                    task = places[i]
                    for k in range(K):
                        d = 0 if is_shared else k
                        h[k, i] = difficulty_in[task, d] + shift[d]
            if gold.shape[0] > 0:
                for i in range(size):
                    known[i] = gold[places[i]]
            for k in range(K):
                of_class = h[k]
                made = ease[k]
                for i in range(L):
                    made[i] = exp_of(-of_class[i])
            for k in range(K):
                for i in range(L):
                    product[k, i] = one
                    taken_out[k, i] = 0.0
                    residuals[k, i] = zero
                    weights[k, i] = zero
            for i in range(L):
                n_votes[i] = 0.0

            # The votes at the current difficulties.
            is_folded = False
            for level in range(first_level, last_level):
                start, end = level_ptr[level], level_ptr[level + 1]
                active = end - start
                base = (start - first_vote) * K
                workers = worker[start:end]
                labels = label[start:end]
                for i in range(active):
                    r = workers[i]
                    for k in range(K):
                        signed_odds[base + k * active + i] = odds[r, k]
                n_small = 0
                if damping != 0.0:
                    for i in range(active):
                        n_votes[i] += 1.0
                for k in range(K):
                    signed = signed_odds[base + k * active : base + (k + 1) * active]
                    eases, products, of_task, bends = ease[k], product[k], residuals[k], weights[k]
                    for i in range(active):
                        x = signed[i] * eases[i]
                        o = x if labels[i] == k else -x
                        signed[i] = o
                        wrong = one / (one + x)
                        right = x * wrong
                        running = products[i] * (right if o > zero else wrong * of_others)
                        products[i] = running
                        of_task[i] += wrong if o > zero else -right
                        bends[i] += right * wrong
                        n_small += 1 if running < smallest else 0
                if n_small > 0:
                    is_folded = True
                    for k in range(K):
                        for i in range(active):
                            if product[k, i] < smallest:
                                taken_out[k, i] += log(product[k, i])
                                product[k, i] = 1.0
            if damping != 0.0:
                for k in range(K):
                    for i in range(size):
                        weights[k, i] = fixed_weight * n_votes[i]

            if solves:
                for i in range(L):
                    loglik_before[i] = loglik[i]
            posterior_of_lanes(
                product,
                taken_out,
                is_folded,
                smallest,
                log_prior,
                prior,
                known,
                refresh,
                size,
                K,
                q_in,
                q,
                total,
                loglik,
            )
            for k in range(K):
                before, after, largest, summed = q_in[k], q[k], change[k], mass[k]
                for i in range(size):
                    largest[i] = max(largest[i], abs(after[i] - before[i]))
                    summed[i] += after[i]
            for i in range(size):
                task = places[i]
                for k in range(K):
                    posterior_out[task, k] = q[k, i]

            # Newton on the difficulties; ease becomes the factor by which the odds change.
            if solves and settles:
                for i in range(L):
                    along[i] = zero
                    bend[i] = one
                    lowest[i] = one
                    largest_move[i] = zero
                # Few arrays per loop: with many, the compiler does not detect that none overlap.
                for k in range(K):
                    shares, of_task, bends, of_class = q[k], residuals[k], weights[k], h[k]
                    made, pushed, squared = ease[k], gradient[k], square_sum[k]
                    towards, spring, stiff = work(pull[k]), work(ridge[k]), work(stiffness[k])
                    for i in range(size):
                        pushed[i] = shares[i] * of_task[i]
                    for i in range(size):
                        made[i] = towards - pushed[i] - spring * of_class[i]
                    for i in range(size):
                        norm[i] += made[i] * made[i]
                    for i in range(size):
                        squared[i] += of_class[i] * of_class[i]
                    own, least = curvature[k], work(MIN_STIFFNESS * stiffness[k])
                    for i in range(size):
                        own[i] = shares[i] * bends[i] + stiff
                    for i in range(size):
                        own[i] -= pushed[i] * of_task[i]
                    for i in range(size):
                        lowest[i] = min(lowest[i], own[i] - least)
                    for i in range(size):
                        own[i] = one / own[i]
                    for i in range(size):
                        made[i] *= own[i]
                    for i in range(size):
                        along[i] += pushed[i] * made[i]
                    for i in range(size):
                        bend[i] += pushed[i] * pushed[i] * own[i]
                    for i in range(size):
                        own[i] *= pushed[i]
                if known.shape[0] > 0:
                    for i in range(size):
                        if known[i] >= 0:
                            lowest[i] = -1.0
                for i in range(size):
                    along[i] /= bend[i]
                for i in range(L):
                    total[i] = zero
                for k in range(K):
                    made, pushed, corrected = ease[k], gradient[k], curvature[k]
                    for i in range(size):
                        made[i] -= corrected[i] * along[i]
                    for i in range(size):
                        total[i] += pushed[i] * made[i]
                for k in range(K):
                    shares, of_task, made = q[k], residuals[k], ease[k]
                    moves = gradient[k]
                    for i in range(size):
                        moves[i] = abs(shares[i] * total[i] - moves[i] * made[i])
                    for i in range(size):
                        largest_move[i] = max(largest_move[i], moves[i])
                n_slow, slow = 0, work(settle)
                for i in range(size):
                    n_slow += 1 if largest_move[i] > slow or lowest[i] < zero else 0
                for i in range(L):
                    total[i] = zero
                for k in range(K):
                    shares, of_task, bends, made, then = q[k], residuals[k], weights[k], ease[k], curvature[k]
                    for i in range(size):
                        then[i] = made[i] * (of_task[i] + half * made[i] * bends[i])
                    for i in range(size):
                        then[i] = shares[i] * exp_of(-then[i])
                    for i in range(size):
                        total[i] += then[i]
                if n_slow > 0:
                    for i in range(size):
                        if largest_move[i] <= slow and lowest[i] >= zero:
                            continue
                        for k in range(K):
                            here[0, k], here[1, k], here[2, k], here[3, k] = (
                                h[k, i],
                                q[k, i],
                                residuals[k, i],
                                weights[k, i],
                            )
                        is_known = known.shape[0] > 0 and known[i] >= 0
                        moves = marginal_step(here, penalty, is_known, step)
                        if moves > settle:
                            n_again += solve_task(
                                signed_odds,
                                level_ptr,
                                first_level,
                                last_level,
                                i,
                                log_prior,
                                penalty,
                                of_others,
                                settle,
                                loglik[i] - loglik_before[i],
                                here,
                                step,
                            )
                            for k in range(K):
                                step[k] = here[0, k] - h[k, i]
                        else:
                            for k in range(K):
                                here[1, k] *= exp_fast(-step[k] * (here[2, k] + 0.5 * step[k] * here[3, k]))
                        share_sum = 0.0
                        for k in range(K):
                            ease[k, i] = step[k]
                            curvature[k, i] = here[1, k]
                            share_sum += here[1, k]
                        total[i] = share_sum
                for k in range(K):
                    of_class, made, new, shares, then = h[k], ease[k], moved_sum[k], q[k], curvature[k]
                    for i in range(size):
                        shares[i] = then[i] / total[i]
                    for i in range(size):
                        of_class[i] += made[i]
                        new[i] += of_class[i]
                    for i in range(size):
                        made[i] = exp_of(-made[i])
                for i in range(size):
                    task = places[i]
                    for k in range(K):
                        difficulty_out[task, k] = h[k, i]
            else:
                for k in range(K):
                    shares, of_task, bends = q[k], residuals[k], weights[k]
                    for i in range(size):
                        of_task[i] *= shares[i]
                        bends[i] *= shares[i]
                if is_shared:
                    # One difficulty for all classes: every class has the sum.
                    for i in range(size):
                        residual_sum = zero
                        weight_sum = zero
                        for k in range(K):
                            residual_sum += residuals[k, i]
                            weight_sum += weights[k, i]
                        for k in range(K):
                            residuals[k, i] = residual_sum
                            weights[k, i] = weight_sum
                if has_difficulty:
                    for k in range(K):
                        d = 0 if is_shared else k
                        of_task, bends, of_class, made = residuals[k], weights[k], h[k], ease[k]
                        towards, spring, stiff = work(pull[d]), work(ridge[d]), work(stiffness[d])
                        for i in range(size):
                            slope = towards - of_task[i] - spring * of_class[i]
                            of_task[i] = slope
                            made[i] = slope / (bends[i] + stiff)
                        if k <= d:
                            squared, new = square_sum[k], moved_sum[k]
                            for i in range(size):
                                norm[i] += of_task[i] * of_task[i]
                                squared[i] += of_class[i] * of_class[i]
                                new[i] += of_class[i] + made[i]
                        for i in range(size):
                            of_class[i] += made[i]
                            made[i] = exp_of(-made[i])
                    for i in range(size):
                        task = places[i]
                        for k in range(1 if is_shared else K):
                            difficulty_out[task, k] = h[k, i]
                else:
                    for k in range(K):
                        for i in range(L):
                            ease[k, i] = one

            # The votes at the new difficulties, for the workers.
            for level in range(first_level, last_level):
                start, end = level_ptr[level], level_ptr[level + 1]
                active = end - start
                base = (start - first_vote) * K
                workers = worker[start:end]
                for k in range(K):
                    signed = signed_odds[base + k * active : base + (k + 1) * active]
                    eases, shares, slopes, bends = ease[k], q[k], gradient[k], curvature[k]
                    for i in range(active):
                        o = signed[i] * eases[i]
                        x = abs(o)
                        wrong = one / (one + x)
                        right = x * wrong
                        slopes[i] = shares[i] * (wrong if o > zero else -right)
                        bends[i] = shares[i] * (right * wrong if damping == 0.0 else fixed_weight)
                for i in range(active):
                    r = workers[i]
                    for k in range(K):
                        of_workers[r, 0, k] += gradient[k, i]
                    for k in range(K):
                        of_workers[r, 1, k] += curvature[k, i]

        scalars[0] += sum_of(loglik)
        scalars[1] += sum_of(norm)
        scalars[2] += n_again
        largest_change = 0.0
        for k in range(K):
            largest_change = max(largest_change, largest_of(change[k]))
            class_mass[k] += sum_of(mass[k])
            if k < squares.shape[0]:
                squares[k] += sum_of(square_sum[k])
                moved[k] += sum_of(moved_sum[k])
        return largest_change

    return pass_over_blocks
