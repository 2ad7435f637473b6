"""PyTorch itself: `interpolate` with antialias gives the first row again for every row where the width is 1."""

import sys

import torch

x = torch.arange(6.0)
how = {"mode": "bilinear", "antialias": True}
tall = torch.nn.functional.interpolate(x.reshape(1, 1, 6, 1), size=(3, 1), **how).ravel()
wide = torch.nn.functional.interpolate(x.reshape(1, 1, 1, 6), size=(1, 3), **how).ravel()
print("6 x 1", tall, "1 x 6", wide)
sys.exit(not torch.allclose(tall, wide))
