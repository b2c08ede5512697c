"""What ran where is what the code asked for, and every copy is counted once."""

import matplotlib.pyplot as plt
import pytest

from helpers import devices, placement

tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def names():
    return devices.logical_devices(4)


@pytest.fixture
def weight(names):
    with tf.device(names[1]):
        return tf.Variable(tf.ones((4, 3)))


def test_an_operation_runs_on_the_current_device_and_the_weight_travels(names, weight):
    ran = placement.trace(lambda x: x @ weight, tf.ones((2, 4)), home=names[0])
    assert ran.kinds(names[0])["MatMul"] == 1
    (copy,) = ran.copies
    assert (copy.kind, copy.source, copy.target, copy.bytes) == ("ReadVariableOp", names[1], names[0], 4 * 4 * 3)
    assert ran.result.shape == (2, 3)


def test_a_tensor_travels_once_to_each_device_that_uses_it(names):
    def used_thrice(x):
        with tf.device(names[1]):
            y = tf.reduce_sum(x) + tf.reduce_max(x)
        with tf.device(names[2]):
            return y, tf.reduce_min(x)

    ran = placement.trace(used_thrice, tf.ones((5,)), home=names[0])
    sent = [(copy.source, copy.target) for copy in ran.copies if copy.kind == "argument"]
    assert sent == [(names[0], names[1]), (names[0], names[2])]
    assert ran.bytes == 2 * 4 * 5 + 2 * 4  # to two devices, and two numbers back


def test_nothing_of_an_earlier_run_is_counted(names, weight):
    first, second = (placement.trace(lambda x: x @ weight, tf.ones((2, 4)), home=names[0]) for _ in range(2))
    assert (first.ops, first.copies) == (second.ops, second.copies)
    tf.ones((2, 4)) @ weight  # outside: not recorded
    assert placement.trace(lambda x: x @ weight, tf.ones((2, 4)), home=names[0]).copies == first.copies


def test_what_is_computed_while_a_function_is_traced_is_not_counted(names):
    def computes_at_once(x):
        with tf.init_scope(), tf.device(names[3]):
            tf.math.erfinv(tf.constant([0.5]))  # eagerly, whenever the function is traced
        return x * 3.0

    assert placement.trace(computes_at_once, tf.ones(2), home=names[0]).devices == [names[0]]


def test_an_edge_that_carries_no_data_is_no_copy(names):
    with tf.device(names[1]):
        kernel, bias = tf.Variable(tf.ones((4, 3))), tf.Variable(tf.ones(3))
    ran = placement.trace(lambda x: x @ kernel + bias, tf.ones((2, 4)), home=names[0])
    assert sorted(copy.bytes for copy in ran.copies) == [4 * 3, 4 * 4 * 3]


def test_recording_ends_when_the_function_raises(names):
    def broken(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        placement.trace(broken, tf.ones(2), home=names[0])
    assert placement.trace(lambda x: x * 3.0, tf.ones(2), home=names[0]).devices == [names[0]]


def test_a_size_that_only_the_run_knows_is_not_guessed(names):
    def positive(x):
        with tf.device(names[1]):
            return tf.boolean_mask(x, x > 0)

    ran = placement.trace(positive, tf.constant([1.0, -1.0]), home=names[0])
    assert None in [copy.bytes for copy in ran.copies]
    with pytest.raises(ValueError, match="fixed shape"):
        _ = ran.bytes


def test_every_copy_is_drawn_with_its_bytes(names, weight):
    def both(x):
        with tf.device(names[1]):
            return tf.reduce_sum(x @ weight) + tf.reduce_sum(x)

    ran = placement.trace(both, tf.ones((2, 4)), home=names[0])
    fig, axis = plt.subplots()
    placement.draw(axis, ran)
    texts = [text.get_text() for text in axis.texts]
    plt.close(fig)
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ran.devices
    assert {"argument", "result", "copy", "32", "4"} <= set(texts)
