; forward/TensorExprGroup_4: no LLVM code: it runs in the evaluator
