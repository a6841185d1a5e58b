;; Loops forever at the first byte: stopped with `out-of-time`, or with `out-of-fuel`.
(module
  (memory (export "memory") 1)
  (func (export "buffer") (param i32) (result i32) (i32.const 0))
  (func (export "scan") (param i32 i32 i64) (result i32)
    (loop $forever (br $forever))
    (i32.const 0)))
