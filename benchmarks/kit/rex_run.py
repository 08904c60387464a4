"""ReX (rex-xai) on one photograph, in an environment of its own: prints the kept pixels and the rows it asked.

python rex_run.py MODEL.onnx PHOTO.png MEAN STD
"""

from __future__ import annotations

import base64
import json
import sys
import time
from typing import Any

import numpy as np
import torch
from rex_xai.explanation import rex  # type: ignore[import-not-found, unused-ignore]
from rex_xai.input.config import CausalArgs, validate_args  # type: ignore[import-not-found, unused-ignore]

BATCH = 16


def main(model: str, photo: str, mean: str, std: str) -> None:
    torch.set_num_threads(1)
    args: Any = CausalArgs()
    args.model, args.path, args.gpu, args.progress_bar = model, photo, False, False
    args.means, args.stds, args.mask_value = [float(mean)] * 3, [float(std)] * 3, 0  # 0: the mean, which is grey
    args.batch_size, args.seed, args.intra_op_num_threads, args.inter_op_num_threads = BATCH, 0, 1, 1
    args.concentrate = False
    validate_args(args)
    predict, shape = rex.get_prediction_func_from_args(args)
    rows = 0

    def counted(tensors: Any, *more: Any, **named: Any) -> Any:
        nonlocal rows
        rows += len(tensors) if isinstance(tensors, list) else tensors.shape[0]
        return predict(tensors, *more, **named)

    started = time.process_time()
    found = rex._explanation(args, shape, counted, torch.device("cpu"), None)
    mask = np.asarray(found.sufficiency_mask.cpu()).astype(bool)
    mask = mask.reshape(-1, *mask.shape[-2:])[0]
    kept = base64.b64encode(np.packbits(mask).tobytes()).decode()
    print(json.dumps({"rows": rows, "seconds": time.process_time() - started, "shape": mask.shape, "mask": kept}))


if __name__ == "__main__":
    main(*sys.argv[1:5])
