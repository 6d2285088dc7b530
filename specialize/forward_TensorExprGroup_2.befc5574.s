; forward/TensorExprGroup_2: no LLVM code: it runs in the evaluator
