; forward/TensorExprGroup_7: no LLVM code: it runs in the evaluator
