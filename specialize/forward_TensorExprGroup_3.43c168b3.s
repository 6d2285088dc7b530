; forward/TensorExprGroup_3: no LLVM code: it runs in the evaluator
