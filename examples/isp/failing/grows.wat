;; Takes memory without bound: stopped with `out-of-memory`.
(module
  (memory (export "memory") 1)
  (func (export "buffer") (param i32) (result i32) (i32.const 0))
  (func (export "scan") (param i32 i32 i64) (result i32)
    (loop $more
      (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (i32.const 0)))
