; forward/TensorExprGroup_6: no LLVM code: it runs in the evaluator
