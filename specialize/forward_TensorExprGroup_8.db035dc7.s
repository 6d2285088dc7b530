; forward/TensorExprGroup_8: no LLVM code: it runs in the evaluator
