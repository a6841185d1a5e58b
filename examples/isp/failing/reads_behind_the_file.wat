;; Reads bytes behind the end of the file: stopped with `trap`.
(module
  (import "frit" "read_at" (func $read_at (param i64 i32 i32)))
  (import "frit" "size" (func $size (result i64)))
  (memory (export "memory") 1)
  (func (export "buffer") (param i32) (result i32) (i32.const 0))
  (func (export "scan") (param i32 i32 i64) (result i32)
    (call $read_at (i64.sub (call $size) (i64.const 1)) (i32.const 0) (i32.const 2))
    (i32.const 0)))
