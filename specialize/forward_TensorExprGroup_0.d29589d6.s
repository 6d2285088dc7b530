; forward/TensorExprGroup_0: no LLVM code: it runs in the evaluator
