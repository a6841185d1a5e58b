;; Reads a byte behind its memory: stopped with `trap`.
(module
  (memory (export "memory") 1)
  (func (export "buffer") (param i32) (result i32) (i32.const 0))
  (func (export "scan") (param i32 i32 i64) (result i32)
    (i32.load8_u (i32.const 0x7fff0000))))
