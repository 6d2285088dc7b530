; forward/TensorExprGroup_5: no LLVM code: it runs in the evaluator
