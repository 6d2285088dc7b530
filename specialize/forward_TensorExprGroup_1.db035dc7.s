; forward/TensorExprGroup_1: no LLVM code: it runs in the evaluator
