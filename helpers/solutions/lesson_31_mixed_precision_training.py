"""Reference answers of lesson 31, and the mistakes its checkers know by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.solutions import Exercise


def cross_entropy(logits, label):
    """Loss of one example from its 16-bit logits: widened first, then everything in float32."""
    wide = np.asarray(logits).astype(np.float32)
    shifted = wide - wide.max()
    return np.log(np.sum(np.exp(shifted))) - shifted[label]


def _cast_after_softmax(logits, label):
    powers = np.exp(logits - logits.max())
    probabilities = (powers / powers.sum(dtype=logits.dtype)).astype(logits.dtype)
    with np.errstate(divide="ignore"):
        return -np.log(probabilities.astype(np.float32)[label])


def _cast_after_loss(logits, label):
    powers = np.exp(logits - logits.max())
    with np.errstate(divide="ignore"):
        return np.float32(-np.log((powers / powers.sum(dtype=logits.dtype))[label]))


def _not_shifted(logits, label):
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        powers = np.exp(np.asarray(logits).astype(np.float32))
        return -np.log(powers[label] / powers.sum())


def _probability_formed(logits, label):
    wide = np.asarray(logits).astype(np.float32)
    powers = np.exp(wide - wide.max())
    with np.errstate(divide="ignore"):
        return -np.log(powers[label] / powers.sum())


def _label_not_shifted(logits, label):
    wide = np.asarray(logits).astype(np.float32)
    return np.log(np.sum(np.exp(wide - wide.max()))) - wide[label]


def _capped(logits, label):
    return -np.log(np.maximum(np.exp(-cross_entropy(logits, label)), np.float32(1e-7)))


def _kept_in_float16(logits, label):
    return np.float16(cross_entropy(logits, label))


def _epsilon_added(logits, label):
    wide = np.asarray(logits).astype(np.float32)
    powers = np.exp(wide - wide.max())
    return -np.log(powers[label] / powers.sum() + np.float32(1e-7))


def _logits(random: np.random.Generator) -> Iterator[tuple]:
    yield np.array([12.0, 2.0, 0.0, -8.0], np.float16), 3
    yield np.array([200.0, 0.0, -300.0], np.float16), 1
    yield np.array([200.0, 0.0, -300.0], np.float16), 0
    yield np.array([0.5, -0.5, 1.0], np.float16), 2
    yield np.array([12.0, 0.0], np.float16), 0
    for _ in range(8):
        classes = int(random.integers(2, 12))
        yield random.normal(0, 8, classes).astype(np.float16), int(random.integers(classes))


def bytes_per_parameter(policy, slots):
    """Bytes per trainable parameter that a Keras training step needs, activations left out."""
    mixed = policy.startswith("mixed_")
    stored = 4 if mixed or policy == "float32" else 2  # the dtype of the variable decides about all but the copy
    return {"weights": stored, "copy": 2 if mixed else 0, "gradients": stored, "optimizer": slots * stored}


def _weights_halved(policy, slots):
    stored = 4 if policy == "float32" else 2
    return {"weights": stored, "copy": 0, "gradients": stored, "optimizer": slots * stored}


def _copy_forgotten(policy, slots):
    return bytes_per_parameter(policy, slots) | {"copy": 0}


def _state_halved(policy, slots):
    stored = 4 if policy == "float32" else 2
    return bytes_per_parameter(policy, slots) | {"optimizer": slots * stored}


def _sixteen_bit_gradients(policy, slots):
    return bytes_per_parameter(policy, slots) | {"gradients": 4 if policy == "float32" else 2}


def _always_wide(policy, slots):
    return bytes_per_parameter(policy, slots) | {"optimizer": 4 * slots}


def _copy_under_every_policy(policy, slots):
    return bytes_per_parameter(policy, slots) | {"copy": 0 if policy == "float32" else 2}


def _policies(random: np.random.Generator) -> Iterator[tuple]:
    for policy in ("float32", "mixed_bfloat16", "mixed_float16", "float16", "bfloat16"):
        for slots in (0, 1, 2):
            yield policy, slots


def train_with_master(master, gradients, rate):
    """Weights for the next forward pass, in float16, after one step per row of float16 gradients."""
    master = np.asarray(master, np.float32)
    for gradient in gradients:
        master = master - np.float32(rate) * gradient.astype(np.float32)
    return master.astype(np.float16)


def _no_master(master, gradients, rate):
    weights = np.asarray(master).astype(np.float16)
    for gradient in gradients:
        weights = (weights - np.float32(rate) * gradient.astype(np.float32)).astype(np.float16)
    return weights


def _product_in_float16(master, gradients, rate):
    master = np.asarray(master, np.float32)
    for gradient in gradients:
        master = master - np.float16(rate) * gradient
    return master.astype(np.float16)


def _ascends(master, gradients, rate):
    return train_with_master(master, gradients, -rate)


def _returns_the_master(master, gradients, rate):
    master = np.asarray(master, np.float32)
    for gradient in gradients:
        master = master - np.float32(rate) * gradient.astype(np.float32)
    return master


def _last_step_only(master, gradients, rate):
    return train_with_master(master, gradients[-1:], rate)


def _averages(master, gradients, rate):
    return (master - np.float32(rate) * np.mean(gradients, axis=0, dtype=np.float32)).astype(np.float16)


def _steps(random: np.random.Generator) -> Iterator[tuple]:
    yield np.array([1.0], np.float32), np.full((1000, 1), 0.1, np.float16), 1e-3
    yield np.array([0.01], np.float32), np.full((4000, 1), 1e-4, np.float16), 2e-4
    yield np.array([0.5, -0.25], np.float32), np.array([[1.0, -2.0]], np.float16), 0.1
    yield np.array([0.3], np.float32), np.zeros((3, 1), np.float16), 0.1
    yield np.array([0.5, -0.25], np.float32), np.array([[1.0, -2.0], [0.5, 1.0], [2.0, 0.0]], np.float16), 0.1
    for _ in range(4):
        n = int(random.integers(1, 5))
        start = random.normal(size=n).astype(np.float32)
        yield start, random.normal(0.2, 0.05, (500, n)).astype(np.float16), float(random.uniform(2e-4, 5e-4))


EXERCISES = {
    "cross_entropy": Exercise(
        cross_entropy,
        _logits,
        (
            (_cast_after_softmax, "this casts after the softmax: what 16 bits lost there no cast brings back."),
            (_cast_after_loss, "this casts the finished loss: widen the logits before the first operation instead."),
            (_not_shifted, "exp overflows float32 above 88: subtract the largest logit first."),
            (
                _probability_formed,
                "exp(-200) is 0 in float32 too: form no probability, take log-sum-exp minus the logit.",
            ),
            (_label_not_shifted, "the largest logit was taken off all the others: take it off the label's logit too."),
            (_capped, "a floor hides the zero and caps the loss at 16: take log-sum-exp minus the logit."),
            (_kept_in_float16, "the loss itself is to be float32: do not cast it back."),
            (_epsilon_added, "an epsilon hides the zero and caps the loss at 16: take log-sum-exp minus the logit."),
        ),
        tolerance=1e-4,
    ),
    "bytes_per_parameter": Exercise(
        bytes_per_parameter,
        _policies,
        (
            (_weights_halved, "a mixed policy halves no weights: its variables are float32, the 16-bit copy is extra."),
            (_copy_forgotten, "under a mixed policy each weight also exists as a 16-bit copy during the step."),
            (_state_halved, "under a mixed policy the optimizer's state stays float32, as its variables are."),
            (_sixteen_bit_gradients, "the gradient of a float32 variable is float32: the cast has a gradient too."),
            (_copy_under_every_policy, "a pure policy computes in the type it stores: there is no copy to make."),
            (_always_wide, "under a pure 16-bit policy the optimizer's state has 16 bits, as its variables have."),
        ),
    ),
    "train_with_master": Exercise(
        train_with_master,
        _steps,
        (
            (_no_master, "this rounds the weights to float16 after each step, so a small update is lost every time."),
            (_product_in_float16, "rate · gradient in float16 underflows: widen the gradient before you multiply."),
            (_ascends, "this goes uphill: subtract rate · gradient."),
            (_last_step_only, "this takes one step alone: each row goes on from the weights of the row before."),
            (_averages, "the rows are steps, one after the other, and no batch to average over."),
            (_returns_the_master, "this returns the master; the forward pass wants its float16 copy."),
        ),
        tolerance=1e-6,
    ),
}
