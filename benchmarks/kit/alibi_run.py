"""Run alibi (CEM) on our LeNet in an environment of its own (see peer_env.py); prints its PNs as JSON.

The network is rebuilt in Keras with the weights of the ONNX file, so that alibi has exact gradients, which its
numerical ones (two queries per pixel and iteration) approximate. The settings are those of its MNIST example, in our
range of pixels and without an autoencoder. alibi's `explain` takes one input at a time; the function that it calls
takes a batch of independent rows, and is called here directly.

    python alibi_run.py inputs.npz lenet.onnx logits
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import onnx  # type: ignore[import-not-found, unused-ignore]
import tensorflow as tf  # type: ignore[import-untyped, import-not-found, unused-ignore]
from alibi.explainers import CEM  # type: ignore[import-not-found, unused-ignore]

SETTINGS = {
    "kappa": 0.0,
    "beta": 0.1,
    "feature_range": (0.0, 1.0),
    "gamma": 0.0,
    "c_init": 1.0,
    "c_steps": 10,
    "max_iterations": 1_000,
    "learning_rate_init": 1e-2,
    "clip": (-1_000.0, 1_000.0),
    "no_info_val": 0.0,
}


def lenet(path: str, activation: str | None) -> Any:
    """The network of the file, from (n, 28, 28, 1)."""
    layers = tf.keras.layers
    network = tf.keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(6, 5, activation="relu"),
            layers.MaxPool2D(2),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPool2D(2),
            layers.Permute((3, 1, 2)),  # the file's order: channels first
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(10, activation=activation),
        ]
    )
    weights = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer]
    network.set_weights([w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T for w in weights])
    return network


def main() -> None:
    inputs, path, scores = sys.argv[1:]
    tf.compat.v1.disable_v2_behavior()  # alibi still relies on it
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    given = np.load(inputs)
    images, logits = given["images"].transpose(0, 2, 3, 1), given["logits"]
    network = lenet(path, "softmax" if scores == "probabilities" else None)
    cem = CEM(network, mode="PN", shape=images.shape, **SETTINGS)
    answer = cem.sess.run(network(tf.convert_to_tensor(images)))
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = logits if scores == "logits" else expected / expected.sum(axis=1, keepdims=True)
    error = float(np.abs(answer - expected).max())
    if error > 1e-4:
        raise SystemExit(f"the network in Keras differs from that of the file by {error:.2g}")
    labels = np.eye(10)[answer.argmax(axis=1)]
    started = time.process_time()
    found, _ = cem.attack(images, Y=labels)
    seconds = time.process_time() - started
    seen = found.reshape(images.shape).transpose(0, 3, 1, 2)  # all zeros where nothing was found
    print(json.dumps({"error": error, "seconds": seconds, "seen": np.asarray(seen, np.float64).tolist()}))


if __name__ == "__main__":
    main()
