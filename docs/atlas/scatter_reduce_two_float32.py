"""aten.scatter_reduce.two, float32, dynamo: -7.01915 where PyTorch gives -1.35003, on 4.31909 (torch 2.13.0, onnxruntime 1.31.1)."""

import sys

import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, x0, x1, x2):
        return torch.scatter_reduce(x0, 0, x1, x2, 'mean', include_self=True)


inputs = (torch.tensor([[-8.478373527526855, -1.765825867652893, -4.3228044509887695, -2.400455951690674, -7.950586795806885], [3.611605167388916, -8.067646980285645, -0.5734938383102417, 3.1285104751586914, -3.033684730529785], [5.106744766235352, 1.135137677192688, 4.947308540344238, 5.774446487426758, -3.973021984100342], [3.270799398422241, -3.893850803375244, 2.8211474418640137, -4.702395439147949, 4.163121223449707], [1.822007417678833, -3.522088050842285, -4.414461135864258, 2.3285136222839355, 8.397199630737305], [4.319086074829102, -0.8690775632858276, -0.43684494495391846, 5.1154985427856445, -6.255067825317383], [2.992039680480957, -2.982185125350952, 5.20722770690918, -3.2104849815368652, 0.44502782821655273], [3.039132595062256, 6.185064315795898, -1.3228504657745361, 8.210625648498535, -7.614414691925049], [-1.605404019355774, -8.97458267211914, 0.7455596923828125, 2.5540218353271484, -3.6432604789733887], [3.7379093170166016, -1.4589811563491821, -7.820890426635742, 6.909596920013428, 5.549069881439209]], dtype=torch.float32),
    torch.tensor([[8, 2], [7, 4], [2, 8], [5, 6], [6, 9], [1, 7], [9, 0], [0, 5], [4, 3], [3, 1]], dtype=torch.int64),
    torch.tensor([[4.550469398498535, 7.178959369659424], [3.3094801902770996, 4.785210132598877], [7.468499183654785, -1.81334388256073], [-7.0191497802734375, -4.426130771636963], [-1.2014161348342896, -0.9889798164367676], [-0.060997724533081055, 5.157646656036377], [2.8871190547943115, -6.654526233673096], [-2.703648567199707, -2.117246627807617], [5.477522373199463, -3.265012264251709], [-3.765460968017578, -1.447023868560791]], dtype=torch.float32),)
expected = Model()(*inputs)
file = torch.onnx.export(Model(), inputs, dynamo=True, opset_version=None, verbose=False).model_proto.SerializeToString()
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_inputs()]
got = session.run(None, dict(zip(names, [x.numpy() for x in inputs])))
expected = [one.numpy() for one in (expected if isinstance(expected, (tuple, list)) else [expected])]
for one, other in zip(expected, got):
    same = one.dtype == other.dtype and np.array_equal(one, other)
    if one.dtype.kind == "f" and one.shape == other.shape:
        finite = np.abs(one[np.isfinite(one)]).max(initial=0)
        same = one.dtype == other.dtype and np.allclose(one, other, 1e-5, 1e-5 * 0.1 * finite, equal_nan=True)
    if not same:
        print("PyTorch:    ", one.dtype, one.shape, one.ravel())
        print("onnxruntime:", other.dtype, other.shape, other.ravel())
        sys.exit(1)
